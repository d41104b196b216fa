"""The page behind the one-time link: the first person makes the owner's account."""

from django import forms
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from config import setup_link
from config.owner import create_owner
from memory.locks import OWNER_LOCK

BACKEND = "django.contrib.auth.backends.ModelBackend"


class OwnerForm(forms.Form):
    email = forms.EmailField(label=_("E-mail"), widget=forms.EmailInput(attrs={"autocomplete": "username"}))
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Eight characters at least. A sentence is better than a puzzle."),
    )


@never_cache
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest, token: str) -> HttpResponse:
    if not setup_link.verify(token):
        return render(request, "setup/spent.html", {"step": "account"}, status=410)
    form = OwnerForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            owner = _make(token, form.cleaned_data["email"], form.cleaned_data["password"])
        except ValidationError as error:
            form.add_error("password", error)
        else:
            if owner is None:
                return render(request, "setup/spent.html", {"step": "account"}, status=410)
            login(request, owner, backend=BACKEND)
            return redirect("welcome")
    page = {"form": form, "step": "account"}
    return render(request, "setup/owner.html", page, status=422 if form.is_bound else 200)


@transaction.atomic
def _make(token: str, email: str, password: str) -> User | None:
    """Make the owner unless somebody was faster; the lock makes two clicks wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [OWNER_LOCK])
    return create_owner(email, password) if setup_link.verify(token) else None

"""What the user's agents have cost, and the prices that the user has set."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from agents.cost_rows import Row, as_csv, rows
from agents.costs import By, Period, total
from agents.models import ModelPrice
from agents.periods import days, period
from agents.prices import Shown, having_price, remove_price, set_price, shown_prices
from agents.refusals import Refused
from agents.signed_in import SignedInRequest, signed_in
from goals.forms import PriceForm

BYS = {
    By.MODEL: gettext_lazy("By model"),
    By.AGENT: gettext_lazy("By goal"),
    By.DAY: gettext_lazy("By day"),
    By.MONTH: gettext_lazy("By month"),
}


@require_GET
@signed_in
def settings_costs(request: SignedInRequest) -> HttpResponse:
    form = PriceForm(initial={name: request.GET.get(name, "") for name in ("kind", "model")})
    if form.initial["model"]:
        form.fields["input"].widget.attrs["autofocus"] = True
    return _page(request, form)


@require_GET
@signed_in
def costs_csv(request: SignedInRequest) -> HttpResponse:
    by, zone = _by(request), timezone.get_current_timezone()
    try:
        since, until = days(request.GET.dict(), zone)
    except Refused as refused:
        return HttpResponse(refused.message, status=400, content_type="text/plain")
    found = rows(by, period(since, until, zone), request.user)
    return as_csv(by, found, f"costs-by-{by}-{since}-{until}")


@require_POST
@signed_in
def price_set(request: SignedInRequest) -> HttpResponse:
    form = PriceForm(request.POST)
    if form.is_valid():
        try:
            set_price(request.user, **form.cleaned_data)
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, _("The price holds from the next run on."))
            return redirect("settings_costs")
    return _page(request, form, status=422)


@require_POST
@signed_in
def price_delete(request: SignedInRequest, price_id: UUID) -> HttpResponse:
    remove_price(get_object_or_404(ModelPrice.objects.for_user(request.user), pk=price_id))
    messages.success(request, _("The price is removed. What was charged stays."))
    return redirect("settings_costs")


def _page(request: SignedInRequest, form: PriceForm, status: int = 200) -> HttpResponse:
    zone, problem = timezone.get_current_timezone(), ""
    try:
        since, until = days(request.GET.dict(), zone)
    except Refused as refused:
        problem, status = refused.message, 400
        since, until = days({}, zone)
    by, asked = _by(request), period(since, until, zone)
    found = rows(by, asked, request.user)
    page = {"by": by, "bys": BYS.items(), "since": since, "until": until, "problem": problem, "rows": found}
    page |= {"total": total({at: row.spending for at, row in enumerate(found)}), "form": form}
    prices = shown_prices(request.user)
    page |= {"unpriced": _unpriced(request, by, asked, found, prices), "prices": prices}
    return render(request, "settings/costs.html", {**page, "here": "settings", "section": "costs"}, status=status)


def _by(request: SignedInRequest) -> By:
    asked = request.GET.get("by", "")
    return next((by for by in BYS if by.value == asked), By.MODEL)


def _unpriced(
    request: SignedInRequest, by: By, asked: Period, found: list[Row], prices: list[Shown]
) -> list[tuple[Row, bool]]:
    """The models that something is unknown of, each with whether it has a price: then a call has broken off."""
    models = found if by is By.MODEL else rows(By.MODEL, asked, request.user)
    unknown = {(row.key["provider"], row.key["model"]): row for row in models if row.spending.unpriced}
    priced = having_price(request.user, prices, unknown) if unknown else set()
    return [(row, model in priced) for model, row in unknown.items()]

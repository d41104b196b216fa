"""What the page of MCP servers accepts: a new one."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from tools.mcp.naming import LONGEST_SERVER
from tools.mcp.programs import startable
from tools.mcp.services import Named


class McpServerForm(forms.Form):
    """A server over HTTP; staff may choose a program that the operator has listed instead."""

    name = forms.CharField(
        label=_("Name"), max_length=LONGEST_SERVER, help_text=_("Small letters and digits, such as “calendar”.")
    )
    url = forms.CharField(label=_("Address"), required=False, max_length=500, widget=forms.URLInput())
    headers = forms.CharField(
        label=_("Headers"),
        required=False,
        max_length=8_000,
        widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
        help_text=_("One on a line, such as “Authorization: Bearer …”. They are encrypted and never shown again."),
    )
    program = forms.ChoiceField(
        label=_("Or a program on this machine"),
        required=False,
        help_text=_("Those that this server's operator allows."),
    )

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        self._programs = startable(user)
        if self._programs:
            choices = [("", _("None")), *((str(n), " ".join(argv)) for n, argv in enumerate(self._programs))]
            self.fields["program"].choices = choices  # type: ignore[attr-defined]
        else:
            del self.fields["program"]

    def clean_headers(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["headers"].splitlines() if line.strip()]
        pairs = [line.partition(":") for line in lines]
        if not all(colon for _name, colon, _value in pairs):
            raise forms.ValidationError(_("Each line is a name, a colon and a value."))
        return {name.strip(): value.strip() for name, _colon, value in pairs}

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not cleaned.get("url") and not cleaned.get("program"):
            self.add_error("url", _("Where is it?"))
        return cleaned

    def named(self) -> Named:
        given = self.cleaned_data
        if program := given.get("program"):
            return Named(given["name"], argv=self._programs[int(program)])
        return Named(given["name"], given["url"], given["headers"])

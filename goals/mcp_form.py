"""What the pages of MCP servers accept: a new one, and changes of one."""

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy as _

from memory.encoding import dumps
from tools.mcp.models import McpServer, Transport
from tools.mcp.naming import LONGEST_SERVER
from tools.mcp.programs import startable
from tools.mcp.services import Changes, Named

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def _headers(note: "StrOrPromise") -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(label=_("Headers"), required=False, max_length=8_000, widget=area, help_text=note)


def _read(headers: str) -> dict[str, str]:
    """Raises: ValidationError."""
    pairs = [line.partition(":") for line in headers.splitlines() if line.strip()]
    if not all(colon for _name, colon, _value in pairs):
        raise forms.ValidationError(_("Each line is a name, a colon and a value."))
    return {name.strip(): value.strip() for name, _colon, value in pairs}


class McpServerForm(forms.Form):
    """A server over HTTP; staff may choose a program that the operator has listed instead. `place` says which of both
    the form is about; what stands in the fields of the other is not looked at."""

    ADDRESS, PROGRAM = "address", "program"

    name = forms.CharField(
        label=_("Name"), max_length=LONGEST_SERVER, help_text=_("Small letters and digits, such as “calendar”.")
    )
    place = forms.ChoiceField(
        choices=[(ADDRESS, _("At an address")), (PROGRAM, _("A program on this machine"))],
        initial=ADDRESS,
        required=False,
        widget=forms.RadioSelect,
    )
    url = forms.CharField(label=_("Address"), required=False, max_length=500, widget=forms.URLInput())
    headers = _headers(
        _(
            "Only if it wants a key: one on a line, such as “Authorization: Bearer …”. They are encrypted and never "
            "shown again. A server where one signs in says so itself."
        )
    )
    program = forms.ChoiceField(
        label=_("Program"),
        required=False,
        help_text=_("Those that this server's operator allows."),
    )

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        self.programs = _programs(user)
        if self.programs:
            self.fields["program"].choices = _choices(self.programs)  # type: ignore[attr-defined]
        else:
            del self.fields["program"], self.fields["place"]

    def clean_headers(self) -> dict[str, str]:
        is_program = self.cleaned_data.get("place") == self.PROGRAM
        return {} if is_program else _read(self.cleaned_data["headers"])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        field = "program" if cleaned.get("place") == self.PROGRAM else "url"
        if not cleaned.get(field) and field not in self.errors:
            self.add_error(field, _("Which one?") if field == "program" else _("Where is it?"))
        return cleaned

    def named(self) -> Named:
        given = self.cleaned_data
        if given.get("place") == self.PROGRAM:
            return Named(given["name"], argv=self.programs[given["program"]])
        return Named(given["name"], given["url"], given["headers"])


class McpEditForm(forms.Form):
    """Changes of a server. Headers are only ever written: blank leaves those that are stored, unless it moves."""

    label = forms.CharField(
        label=_("Name"), required=False, max_length=60, help_text=_("As it stands here. Its tools keep their names.")
    )
    url = forms.CharField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(),
        help_text=_("At another address it gets no stored headers, and you look at its tools and sign in anew."),
    )
    headers = _headers(_("Instead of those that are stored, which stay if this is blank and the address is the same."))
    no_headers = forms.BooleanField(label=_("Remove the stored headers"), required=False)
    program = forms.ChoiceField(label=_("Program"), help_text=_("Of another one you look at the tools anew."))

    def __init__(self, server: McpServer, data: Any = None) -> None:
        self._programs = _programs(server.user)
        super().__init__(data, initial={"label": str(server), "url": server.url, "program": _key(server.argv)})
        is_program = server.transport == Transport.STDIO
        for name in ("url", "headers", "no_headers") if is_program else ("program",):
            del self.fields[name]
        if is_program:
            self.fields["program"].choices = _choices(self._programs)  # type: ignore[attr-defined]
        elif not server.sealed_headers:
            del self.fields["no_headers"]

    def clean_headers(self) -> dict[str, str]:
        return _read(self.cleaned_data["headers"])

    def changes(self) -> Changes:
        given = self.cleaned_data
        if "program" in given:
            return Changes(given["label"], argv=self._programs[given["program"]])
        keeps = not given["headers"] and not given.get("no_headers")
        return Changes(given["label"], given["url"], None if keeps else given["headers"])


def _programs(user: User) -> dict[str, list[str]]:
    return {_key(argv): argv for argv in startable(user)}


def _choices(programs: Mapping[str, list[str]]) -> list[tuple[str, str]]:
    return [(key, " ".join(argv)) for key, argv in programs.items()]


def _key(argv: list[str]) -> str:
    """A command by what it is: by its place in the list an open form would start another one when that is changed."""
    return sha256(dumps(argv)).hexdigest()


class McpClientForm(forms.Form):
    """As whom its user has registered us at an authorization server that registers nobody by itself."""

    client_id = forms.CharField(
        label=_("Client id"), required=False, max_length=500, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    secret = forms.CharField(
        label=_("Client secret"),
        required=False,
        max_length=2_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_("If it gave you one. Stored encrypted, never shown again."),
    )

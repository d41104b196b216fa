"""What the pages of models accept: a new connection, changes of one, and who does what."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.forms import BoundField
from django.utils.translation import gettext_lazy as _

from agents.connecting import Given
from agents.connections import key_for
from agents.models import ModelConnection
from agents.providers import addresses
from agents.providers.base import Routing
from agents.providers.capabilities import LONGEST_WINDOW, Capabilities
from agents.providers.catalog import Kind, kind_of, known_kinds
from agents.providers.known_models import known
from agents.routing import routing_of

URL_LENGTH = 500
MODEL_LENGTH = 200
MOST_VENDORS = 20

# The one mistake that the Test button can help with.
NO_MODEL = "no_model"


class ConnectionForm(forms.Form):
    """One way to a model. In the page each kind has fields of its own: `<kind>-url`, `<kind>-key`, `<kind>-model`."""

    kind = forms.ChoiceField(choices=[(kind.kind, kind.label) for kind in known_kinds()])

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        self.user = user

    def values(self) -> tuple[Kind, Given]:
        """The chosen kind, and what is given of it; blanks are filled with what the kind offers, and with the key that
        is stored for the address."""
        kind = kind_of(self.cleaned_data["kind"])
        url, key, model = (self.written(kind, name).strip() for name in ("url", "key", "model"))
        url = url or kind.default_base_url
        key = key or key_for(self.user, kind.kind, url)
        return kind, Given(model or next(iter(kind.models), ""), url, key)

    def written(self, kind: Kind, name: str, otherwise: str = "") -> str:
        """What was written into a field of `kind` (url, key or model), so that a mistake elsewhere costs nothing."""
        return str(self.data.get(f"{kind.kind}-{name}", otherwise))

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if "kind" not in cleaned:
            return cleaned
        kind, given = self.values()
        check(self.user, kind, given)
        if kind.needs_key and not given.api_key:
            raise forms.ValidationError(_("This provider needs an API key."))
        if not given.model:
            question = _("Which model? Test the connection to see what the server has.")
            raise forms.ValidationError(question, code=NO_MODEL)
        return cleaned


class EditForm(forms.Form):
    """Changes of a connection. A key is only ever written; a blank field leaves the one that is stored."""

    name = forms.CharField(
        label=_("Name"), required=False, max_length=ModelConnection.NAME_LENGTH, help_text=_("As it stands in lists.")
    )
    base_url = forms.CharField(label=_("Address"), required=False, max_length=URL_LENGTH)
    api_key = forms.CharField(
        label=_("New key"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}, render_value=True),
        help_text=_("Stored encrypted, never shown again. Blank keeps the key that is stored."),
    )
    model = forms.CharField(label=_("Model"), max_length=MODEL_LENGTH)
    order = forms.CharField(
        label=_("Vendors to try first"), required=False, help_text=_("In order, with commas between: anthropic, azure")
    )
    only_these = forms.BooleanField(label=_("No others than these"), required=False)
    require_parameters = forms.BooleanField(label=_("Only vendors that honour all parameters"), required=False)
    deny_training = forms.BooleanField(label=_("Only vendors that keep no data"), required=False)
    title = forms.CharField(
        label=_("Listed as"), required=False, max_length=100, help_text=_("Public attribution there. Blank: none.")
    )
    referer = forms.URLField(label=_("Listed address"), required=False, max_length=200)
    tools = forms.ChoiceField(label=_("Uses tools"), required=False)
    images = forms.ChoiceField(label=_("Sees images"), required=False)
    context_length = forms.IntegerField(
        label=_("Context, in tokens"),
        required=False,
        min_value=1_000,
        max_value=LONGEST_WINDOW,
        help_text=_("Longer conversations are shortened for it."),
    )

    ROUTING = ("order", "only_these", "require_parameters", "deny_training", "title", "referer")
    FACTS = ("tools", "images", "context_length")

    def __init__(self, connection: ModelConnection, data: Any = None) -> None:
        super().__init__(data, initial=_initial(connection))
        self._connection, self._kind = connection, kind_of(connection.kind)
        dropped = () if self._kind.routes else self.ROUTING
        for name in (*dropped, *(() if self._kind.needs_url else ("base_url", "api_key"))):
            del self.fields[name]
        found = Capabilities.read(connection.learned).over(known(connection.kind, connection.model))
        for name in ("tools", "images"):
            answer = {True: _("yes"), False: _("no"), None: _("not known")}[getattr(found, name)]
            choices = [("", _("As found (%(answer)s)") % {"answer": answer}), ("yes", _("Yes")), ("no", _("No"))]
            self.fields[name].choices = choices  # type: ignore[attr-defined]

    def place(self) -> list[BoundField]:
        """What leads to the model."""
        return [bound for bound in self if bound.name not in (*self.ROUTING, *self.FACTS)]

    def routing(self) -> list[BoundField]:
        return [bound for bound in self if bound.name in self.ROUTING]

    def facts(self) -> list[BoundField]:
        return [bound for bound in self if bound.name in self.FACTS]

    def given(self) -> Given:
        said = self.cleaned_data
        url = said.get("base_url", "").strip() or self._kind.default_base_url
        return Given(
            said["model"], url, said.get("api_key", ""), said["name"].strip(), self._routing(), self._corrections()
        )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            check(self._connection.user, self._kind, self.given())
        return cleaned

    def _routing(self) -> Routing:
        if not self._kind.routes:
            return routing_of(self._connection.routing)
        said = self.cleaned_data
        order = tuple(name for each in said["order"].split(",") if (name := each.strip()))
        flags = {name: said[name] for name in ("only_these", "require_parameters", "deny_training")}
        return Routing(order[:MOST_VENDORS], **flags, title=said["title"], referer=said["referer"])

    def _corrections(self) -> Capabilities:
        said = self.cleaned_data
        tools, images = ({"yes": True, "no": False}.get(said[name]) for name in ("tools", "images"))
        return Capabilities(tools=tools, images=images, context_length=said["context_length"])


class UsesForm(forms.Form):
    """Who does what, among the user's own connections."""

    default = forms.ModelChoiceField(
        queryset=ModelConnection.objects.none(),
        label=_("Conversations"),
        empty_label=None,
        help_text=_("Plans, tools, replies"),
    )
    summariser = forms.ModelChoiceField(
        queryset=ModelConnection.objects.none(),
        label=_("Summaries and titles"),
        required=False,
        empty_label=_("The same"),
        help_text=_("Short and cheap"),
    )
    stand_in = forms.ModelChoiceField(
        queryset=ModelConnection.objects.none(),
        label=_("If a model is out of reach"),
        required=False,
        empty_label=_("Nobody"),
        help_text=_("Answers for the rest of the run"),
    )

    def __init__(self, connections: "QuerySet[ModelConnection]", *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for each in self.fields.values():
            each.queryset = connections  # type: ignore[attr-defined]


def check(user: User, kind: Kind, given: Given) -> None:
    """Whether these values can be those of a connection of `user`. Raises: ValidationError."""
    url = given.base_url
    if len(url) > URL_LENGTH or len(given.model) > MODEL_LENGTH:
        raise forms.ValidationError(_("The address, the key or the name of the model is none."))
    if not (url + given.api_key + given.model).isprintable():
        raise forms.ValidationError(_("The address, the key or the name of the model is none."))
    if not "".join((given.name, given.routing.title, given.routing.referer, *given.routing.order)).isprintable():
        raise forms.ValidationError(_("Names and lists are one line each, without control characters."))
    if kind.needs_url and not url:
        raise forms.ValidationError(_("Which address does the server have?"))
    if not kind.needs_url or url == kind.default_base_url:
        return
    if not url.startswith(("http://", "https://")):
        raise forms.ValidationError(_("The address must start with http:// or https://."))
    try:
        addresses.check(url, anywhere=user.is_staff)
    except addresses.AddressRefused:
        raise forms.ValidationError(
            _("This address cannot be used: it must be that of a server on the internet, without ? and #.")
        ) from None


def _initial(connection: ModelConnection) -> dict[str, object]:
    routing, said = routing_of(connection.routing), Capabilities.read(connection.corrections)
    words = {True: "yes", False: "no", None: ""}
    return {
        "name": connection.name,
        "base_url": connection.address,
        "model": connection.model,
        "order": ", ".join(routing.order),
        "only_these": routing.only_these,
        "require_parameters": routing.require_parameters,
        "deny_training": routing.deny_training,
        "title": routing.title,
        "referer": routing.referer,
        "tools": words[said.tools],
        "images": words[said.images],
        "context_length": said.context_length,
    }

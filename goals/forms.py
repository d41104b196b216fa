"""What pages accept. Rules that others must keep too (lengths, blanks) are the services'; forms only shape input."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from agents.budgets.models import Window
from agents.models import ModelConnection, UserAgent
from agents.providers import addresses
from agents.providers.catalog import Kind, known_kinds
from goals.models import Goal
from memory.models import Note

URL_LENGTH = 500
MODEL_LENGTH = 200
WINDOWS = [
    (Window.MONTH, _("a month")),
    (Window.DAY, _("a day")),
    (Window.TOTAL, _("total")),
    (Window.RUN, _("each run")),
]


class GoalForm(forms.Form):
    title = forms.CharField(label=_("What do you want?"), max_length=Goal.TITLE_LENGTH)
    description = forms.CharField(
        label=_("Anything the agent should know"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "dir": "auto"}),
        help_text=_("Optional. The agent reads this before every step."),
    )


class GoalSettingsForm(GoalForm):
    """`model` chooses among the user's own connections; empty is the user's default."""

    model = forms.ModelChoiceField(
        queryset=ModelConnection.objects.none(),
        label=_("Model"),
        required=False,
        empty_label=_("Your default"),
        help_text=_("Used for this goal alone."),
    )

    def __init__(self, *args: Any, connections: "QuerySet[ModelConnection]", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["model"].queryset = connections  # type: ignore[attr-defined]


class BudgetForm(forms.Form):
    """`goal` chooses among the user's own; empty is for everything."""

    goal = forms.ModelChoiceField(
        queryset=Goal.objects.none(), label=_("For"), required=False, empty_label=_("Everything")
    )
    window = forms.ChoiceField(label=_("In"), choices=WINDOWS)
    money = forms.DecimalField(
        label=_("US dollars"), required=False, min_value=0, max_value=10_000_000, max_digits=12, decimal_places=4
    )
    tokens = forms.IntegerField(label=_("Tokens"), required=False, min_value=0, max_value=10**15)

    def __init__(self, *args: Any, goals: "QuerySet[Goal]", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["goal"].queryset = goals  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not self.errors and given.get("money") is None and given.get("tokens") is None:
            raise forms.ValidationError(_("Give a limit in dollars or in tokens."))
        return given


class NoteForm(forms.Form):
    title = forms.CharField(max_length=Note.TITLE_LENGTH)
    body = forms.CharField(required=False, max_length=Note.BODY_LENGTH, strip=False)


class MessageForm(forms.Form):
    content = forms.CharField(strip=False)
    client_message_id = forms.UUIDField(required=False)


class ProfileForm(forms.Form):
    name = forms.CharField(
        label=_("Name"), required=False, max_length=150, widget=forms.TextInput(attrs={"autocomplete": "name"})
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        max_length=60,
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        help_text=_("Type a city, such as Europe/Vienna. Agents and pages use its times."),
    )


class ThemeForm(forms.Form):
    theme = forms.ChoiceField(choices=UserAgent.Theme.choices)


class DeviceForm(forms.Form):
    name = forms.CharField(label=_("Name of the device"), max_length=100)


# The one mistake that the Test button can help with.
NO_MODEL = "no_model"


class ConnectionForm(forms.Form):
    """One way to a model. In the page each kind has fields of its own: `<kind>-url`, `<kind>-key`, `<kind>-model`."""

    kind = forms.ChoiceField(choices=[(kind.kind, kind.label) for kind in known_kinds()])

    def __init__(self, user: User, data: Any = None) -> None:
        super().__init__(data)
        self._user = user

    def values(self) -> tuple[Kind, str, str, str]:
        """Return (kind, base URL, API key, model) of the chosen kind, blanks filled with what the kind offers."""
        kind = next(known for known in known_kinds() if known.kind == self.cleaned_data["kind"])
        url, key, model = (str(self.data.get(f"{kind.kind}-{name}", "")).strip() for name in ("url", "key", "model"))
        return kind, url or kind.default_base_url, key, model or next(iter(kind.models), "")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if "kind" not in cleaned:
            return cleaned
        kind, url, key, model = self.values()
        if len(url) > URL_LENGTH or len(model) > MODEL_LENGTH or not (url + key + model).isprintable():
            raise forms.ValidationError(_("The address, the key or the name of the model is none."))
        if kind.needs_key and not key:
            raise forms.ValidationError(_("This provider needs an API key."))
        if kind.needs_url and url != kind.default_base_url:
            self._check_address(url)
        if not model:
            question = _("Which model? Test the connection to see what the server has.")
            raise forms.ValidationError(question, code=NO_MODEL)
        return cleaned

    def _check_address(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise forms.ValidationError(_("The address must start with http:// or https://."))
        try:
            addresses.check(url, anywhere=self._user.is_staff)
        except addresses.AddressRefused:
            raise forms.ValidationError(
                _("This address cannot be used: it must be that of a server on the internet, without ? and #.")
            ) from None


class PriceForm(forms.Form):
    """What a model costs. Figures are read by `agents.prices`, as people write them."""

    kind = forms.ChoiceField(
        label=_("Provider"), choices=[(kind.kind, kind.label) for kind in known_kinds() if not kind.is_scripted]
    )
    model = forms.CharField(label=_("Model"), max_length=MODEL_LENGTH)
    input = forms.CharField(label=_("Input"), max_length=30, help_text=_("Dollars per million tokens."))
    output = forms.CharField(label=_("Output"), max_length=30)
    cached = forms.CharField(
        label=_("Read from the cache"), max_length=30, required=False, help_text=_("Empty: as all input.")
    )
    written = forms.CharField(label=_("Written to the cache"), max_length=30, required=False)

"""What pages accept. Rules that others must keep too (lengths, blanks) are the services'; forms only shape input."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from agents.budgets.models import MOST_DOLLARS, MOST_TOKENS, Window
from agents.models import ModelConnection, UserAgent
from agents.providers.catalog import known_kinds
from goals.connection_forms import MODEL_LENGTH
from goals.figures import figure_of, typed
from goals.models import Goal, Measurement, Target
from memory.models import Note

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
        help_text=_("A choice holds for this goal alone."),
    )

    def __init__(self, *args: Any, connections: "QuerySet[ModelConnection]", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model = self.fields["model"]
        model.queryset = connections  # type: ignore[attr-defined]
        if default := next((each for each in connections if each.is_default), None):
            model.empty_label = _("Your default: %(name)s") % {"name": default}  # type: ignore[attr-defined]


class MonthlyLimitForm(forms.Form):
    """What the first run asks of money. Empty is no limit."""

    USUAL = 20

    monthly = forms.DecimalField(
        label=_("Monthly limit, in US dollars"),
        required=False,
        initial=USUAL,
        min_value=0,
        max_value=MOST_DOLLARS,
        max_digits=12,
        decimal_places=4,
        help_text=_("A call that could pass it is never made. Empty is no limit."),
    )


class BudgetForm(forms.Form):
    """`goal` chooses among the user's own; empty is for everything."""

    goal = forms.ModelChoiceField(
        queryset=Goal.objects.none(), label=_("For"), required=False, empty_label=_("All your agents")
    )
    window = forms.ChoiceField(label=_("In"), choices=WINDOWS)
    money = forms.DecimalField(
        label=_("At most, in US dollars"),
        required=False,
        min_value=0,
        max_value=MOST_DOLLARS,
        max_digits=12,
        decimal_places=4,
    )
    tokens = forms.IntegerField(
        label=_("At most, in tokens"),
        required=False,
        min_value=0,
        max_value=MOST_TOKENS,
        help_text=_("One of the two is enough."),
    )

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
    feed_at = forms.TimeField(
        label=_("Every day at"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    quiet_from = forms.TimeField(
        label=_("Quiet from"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    quiet_to = forms.TimeField(
        label=_("Quiet until"), required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        if (given.get("quiet_from") is None) != (given.get("quiet_to") is None) and not self.errors:
            self.add_error("quiet_to", _("Give both times, or neither."))
        return given


class NoticeForm(forms.Form):
    """What its user is told of, and whether by mail."""

    waiting = forms.BooleanField(required=False)
    failed = forms.BooleanField(required=False)
    finished = forms.BooleanField(required=False)
    mail = forms.BooleanField(required=False)


class ThemeForm(forms.Form):
    theme = forms.ChoiceField(choices=UserAgent.Theme.choices)


class FigureField(forms.Field):
    """A figure as people write it (`figures.figure_of`)."""

    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def to_python(self, value: Any) -> float | None:
        try:
            return figure_of(value) if value else None
        except ValueError as wrong:
            raise forms.ValidationError(str(wrong)) from wrong

    def prepare_value(self, value: Any) -> Any:
        return typed(value) if isinstance(value, float) else value


class TargetForm(forms.Form):
    name = forms.CharField(label=_("What is measured"), max_length=Target.NAME_LENGTH)
    value = FigureField(label=_("Target"))
    unit = forms.CharField(label=_("Unit (optional)"), required=False, max_length=Target.UNIT_LENGTH)
    deadline = forms.DateField(label=_("By when"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"))


class MeasurementForm(forms.Form):
    value = FigureField(label=_("Value"))
    day = forms.DateField(label=_("Day"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"))
    note = forms.CharField(label=_("Note (optional)"), required=False, max_length=Measurement.NOTE_LENGTH)


class DeviceForm(forms.Form):
    name = forms.CharField(label=_("Name of the device"), max_length=100)


class PriceForm(forms.Form):
    """What a model costs. Figures are read by `agents.prices`, as people write them."""

    kind = forms.ChoiceField(
        label=_("Provider"), choices=[(kind.kind, kind.label) for kind in known_kinds() if not kind.is_scripted]
    )
    model = forms.CharField(label=_("Model"), max_length=MODEL_LENGTH)
    input = forms.CharField(label=_("Input"), max_length=30)
    output = forms.CharField(label=_("Output"), max_length=30)
    cached = forms.CharField(
        label=_("Read from the cache"), max_length=30, required=False, help_text=_("Left empty: as other input.")
    )
    written = forms.CharField(label=_("Written to the cache"), max_length=30, required=False)

"""What pages accept. Rules that others must keep too (lengths, blanks) are the services'; forms only shape input."""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from agents.models import ModelConnection, UserAgent
from goals.models import Goal
from memory.models import Note


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

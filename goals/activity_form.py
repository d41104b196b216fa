"""What the page of activity is asked to show."""

from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from goals.activity import below
from goals.models import Goal
from tools import registry
from tools.sought import Kind, Sought, State, Who

WORDS_LENGTH = 200
KINDS = [("", _("Changes")), (Kind.READING, _("Reading")), (Kind.EVERYTHING, _("Everything"))]
WHO = [("", _("Anyone")), (Who.AGENT, _("Agents")), (Who.PERSON, _("You"))]
STATES = [
    ("", _("Any outcome")),
    (State.DONE, _("Done")),
    (State.UNDOABLE, _("Can be undone")),
    (State.UNDONE, _("Undone")),
    (State.WAITING, _("Waits for you")),
    (State.RUNNING, _("Under way")),
    (State.FAILED, _("Failed or refused")),
    (State.LEFT, _("Left undone")),
    (State.UNKNOWN, _("Outcome unknown")),
]


class ActivityForm(forms.Form):
    """All may be left out. What is not as it should be is left out, too: it comes with an address."""

    q = forms.CharField(label=_("Search activity"), required=False, max_length=WORDS_LENGTH)
    goal = forms.ModelChoiceField(
        label=_("Goal"), required=False, empty_label=_("All goals"), queryset=Goal.objects.none()
    )
    who = forms.ChoiceField(label=_("Who"), required=False, choices=WHO)
    state = forms.ChoiceField(label=_("Outcome"), required=False, choices=STATES)
    kind = forms.ChoiceField(label=_("Kind"), required=False, choices=KINDS)
    tool = forms.ChoiceField(label=_("Tool"), required=False)
    since = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label=_("To"), required=False, widget=forms.DateInput(attrs={"type": "date"}))

    use_required_attribute = False
    IN_SIGHT = ("goal", "who", "state")
    NARROW = ("kind", "tool", "since", "until")

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["goal"].queryset = Goal.objects.for_user(user).order_by("title")  # type: ignore[attr-defined]
        tools = sorted((tool.wording.done, name) for name, tool in registry.tools_of(user.pk).items())
        self.fields["tool"].choices = [("", _("Any tool")), *((name, words) for words, name in tools)]  # type: ignore[attr-defined]
        for name in (*self.IN_SIGHT, *self.NARROW):
            attributes = self.fields[name].widget.attrs
            attributes |= {"class": "input" if name in ("since", "until") else "select", "data-size": "s"}
        self.is_valid()

    @property
    def in_sight(self) -> list[forms.BoundField]:
        return [self[name] for name in self.IN_SIGHT]

    @property
    def narrowing(self) -> list[forms.BoundField]:
        return [self[name] for name in self.NARROW]

    @property
    def goal_chosen(self) -> Goal | None:
        return self.cleaned_data.get("goal")

    @property
    def within(self) -> Q:
        return below(self.goal_chosen.thread_id) if self.goal_chosen else Q()

    @property
    def is_narrow(self) -> bool:
        """Whether one of the fields is filled in that are rarely needed."""
        return any(self.cleaned_data.get(name) for name in self.NARROW)

    @property
    def is_open(self) -> bool:
        """Whether nothing at all is asked for."""
        return not any(self.cleaned_data.values())

    @property
    def begins(self) -> datetime | None:
        return _midnight(self.cleaned_data.get("since"))

    @property
    def sought(self) -> Sought:
        given, last = self.cleaned_data, self.cleaned_data.get("until")
        return Sought(
            text=given.get("q", ""),
            tool=given.get("tool", ""),
            who=Who(given["who"]) if given.get("who") else None,
            kind=Kind(given.get("kind") or Kind.CHANGES),
            state=State(given["state"]) if given.get("state") else None,
            since=self.begins,
            until=_midnight(last + timedelta(days=1)) if last and last < date.max else None,
        )


def _midnight(day: date | None) -> datetime | None:
    """When a day begins where the user is. A year that no moment can have is as good as none."""
    if day is None or not 1900 <= day.year <= 9000:
        return None
    return datetime.combine(day, time(), timezone.get_current_timezone())

"""Which notices a user has seen without being told: those of places that they have looked at since (mission H10)."""

from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import ResolverMatch
from django.utils import timezone

from agents.services import assistant_of
from goals.models import Goal
from goals.notice import Glance, Notice, NoticeKind

HOME: Final = "home"
"""Shows how all goals stand."""
INBOX: Final = "approvals"
"""Shows the calls that wait, not what an agent has asked or a budget holds up."""


def looked(user: User, page: ResolverMatch) -> str:
    """A user looks at a page now. Returns which place that is; most pages show no notices and are none."""
    if place := _place(user, page):
        Glance.objects.update_or_create(user=user, place=place, defaults={"at": timezone.now()})
    return place


def stands_at(place: str, notice: Notice) -> bool:
    """Whether whoever has that place before their eyes sees it there."""
    is_call = notice.kind == NoticeKind.WAITING and notice.run is None
    return place == HOME or (place == INBOX and is_call) or place == str(notice.thread_id)


def thread_of(user: User, page: ResolverMatch) -> UUID | None:
    """Of the conversation that a page shows."""
    if page.url_name == "goal":
        return Goal.objects.for_user(user).filter(pk=page.kwargs["goal_id"]).values_list("thread", flat=True).first()
    return assistant_of(user).thread_id if page.url_name == "assistant" else None


def _place(user: User, page: ResolverMatch) -> str:
    if page.namespace:
        return ""
    if page.url_name in (HOME, INBOX):
        return page.url_name
    return str(thread_of(user, page) or "")

"""A notice in words, and where it leads."""

from django.urls import reverse
from django.utils.translation import gettext as _

from agents.agentable import agentable_of
from agents.live.turns import where_of
from goals.notice import Notice, NoticeKind
from goals.owners import conversation_of
from memory.models import AgentRun
from tools.models import AgentAction, asked_of


def title(notice: Notice) -> str:
    """Such as "Waits for you: Vienna half marathon"."""
    how = {
        NoticeKind.WAITING: _("Waits for you"),
        NoticeKind.FAILED: _("Failed"),
        NoticeKind.FINISHED: _("Finished"),
    }[NoticeKind(notice.kind)]
    return f"{how}: {agentable_of(notice.thread).name()}"


def link(notice: Notice) -> str:
    """The address that leads to what it is about, and notes that it was seen."""
    return reverse("notice", args=[notice.pk])


def place_of(notice: Notice) -> str:
    """The address of what it is about: where it is decided as long as it asks, else in its conversation."""
    if AgentAction.objects.filter(pk=notice.subject).filter(pk__in=asked_of(notice.user)).exists():
        return f"{reverse('approvals')}#card-{notice.subject}"
    run = AgentRun.objects.filter(pk=notice.run, thread=notice.thread).first() if notice.run else None
    return f"{conversation_of(notice.thread)}{where_of(run) if run else ''}"

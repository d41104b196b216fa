"""A notice in words, and where it leads."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from agents.live.turns import where_of
from agents.models import UserAgent
from goals.glances import HOME, INBOX, stands_at
from goals.models import Goal
from goals.notice import Notice, NoticeKind
from goals.owners import conversation_of, owner_of
from memory.models import AgentRun
from memory.text import clip, visible
from tools.models import AgentAction, asked_of

LINES: Final = 3
LINE_LENGTH: Final = 100


def title(notice: Notice) -> str:
    """Such as "Waits for you: Vienna half marathon", in one line and only what can be seen (threat T17)."""
    how = {
        NoticeKind.WAITING: _("Waits for you"),
        NoticeKind.FAILED: _("Failed"),
        NoticeKind.FINISHED: _("Finished"),
    }[NoticeKind(notice.kind)]
    return _line(f"{how}: {_name(notice)}")


def counted(notices: Sequence[Notice]) -> str:
    """How many of which kind, such as "2 wait for you, 1 failed, 4 finished"."""
    numbers = Counter(notice.kind for notice in notices)
    waiting, failed, finished = (numbers[kind] for kind in NoticeKind)
    words = [
        (waiting, ngettext("%(n)d waits for you", "%(n)d wait for you", waiting)),
        (failed, ngettext("%(n)d failed", "%(n)d failed", failed)),
        (finished, ngettext("%(n)d finished", "%(n)d finished", finished)),
    ]
    return ", ".join(text % {"n": n} for n, text in words if n)


def first_lines(notices: Sequence[Notice]) -> str:
    """What the first of them say, a line each: first what waits, then what failed."""
    order = [*NoticeKind]
    first = sorted(notices, key=lambda notice: order.index(NoticeKind(notice.kind)))[:LINES]
    lines = [clip(_line(f"{_name(each)}: {each.said}"), LINE_LENGTH) for each in first]
    if more := len(notices) - len(first):
        lines.append(ngettext("and %(n)d more", "and %(n)d more", more) % {"n": more})
    return "\n".join(lines)


def page_of(notices: Sequence[Notice]) -> str:
    """The address of the narrowest page on which all of them are seen (see `goals.glances`)."""
    first = notices[0].thread
    if all(stands_at(str(first.pk), each) for each in notices) and first.kind in (Goal.kind(), UserAgent.kind()):
        return conversation_of(first)
    return reverse(INBOX if all(stands_at(INBOX, each) for each in notices) else HOME)


def link(notice: Notice) -> str:
    """The address that leads to what it is about, and notes that it was seen."""
    return reverse("notice", args=[notice.pk])


def place_of(notice: Notice) -> str:
    """The address of what it is about: where it is decided as long as it asks, else in its conversation."""
    if AgentAction.objects.filter(pk=notice.subject).filter(pk__in=asked_of(notice.user)).exists():
        return f"{reverse('approvals')}#card-{notice.subject}"
    run = AgentRun.objects.filter(pk=notice.run, thread=notice.thread).first() if notice.run else None
    return f"{conversation_of(notice.thread)}{where_of(run) if run else ''}"


def _name(notice: Notice) -> str:
    """Of the agent that it is about."""
    agent = owner_of(notice.thread)
    return agent.name() if agent else _("A deleted agent")


def _line(text: str) -> str:
    return " ".join(visible(text).split())

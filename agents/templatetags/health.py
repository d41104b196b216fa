"""The strip on top of the staff's index: whether the parts are there, and how much waits."""

import redis
from django import template

from agents.engine.presence import commands_withheld
from agents.vitals import Part, parts
from tools.searching import engine, withheld

register = template.Library()


@register.simple_tag
def health() -> list[Part]:
    return [*parts(), _search(), *_commands()]


def _commands() -> list[Part]:
    """Whether the sandbox holds, as the workers have found it."""
    try:
        withheld = commands_withheld()
    except redis.RedisError:
        return []
    return [Part("Commands", not withheld, " ".join(withheld) or "the sandbox holds")]


def _search() -> Part:
    """One that was never set up is not ill."""
    chosen, reason = engine(), withheld()
    return Part("Web search", not (chosen and reason), f"by {chosen.name}" if chosen and not reason else reason)

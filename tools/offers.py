"""To which agents a tool is offered, and where people find it."""

from enum import StrEnum


class Audience(StrEnum):
    """Which agents a tool suits: those who talk with a person, and those who work alone."""

    CONVERSATION = "conversation"
    TASK = "task"


class Pack(StrEnum):
    """Tools that belong together, and are only offered to agents whose owner has switched them on (mission D11)."""

    REFLECTIVE = "reflective"


class Topic(StrEnum):
    """What a tool is about, by which people find it in a list. MORE: nothing else fits."""

    NOTES = "notes"
    FILES = "files"
    WEB = "web"
    PLANS = "plans"
    RECORD = "record"
    MORE = "more"


class Needs(StrEnum):
    """What an agent must have before a tool is of any use to it: the first two by its kind, the others with time."""

    ALL_GOALS = "all_goals"
    TARGET = "target"
    ARCHIVES = "archives"
    SKILLS = "skills"

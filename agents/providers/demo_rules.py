"""What people say to the demonstration, and what it begins to do about it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from agents.providers.demo_topics import checklist
from memory.text import clip

CAN_DO = """Here is what you can try with me:

- **Create a note** about something: “Create a note about what I need for a half marathon in May”
- **Write something down**: “Write down: call the dentist on Monday”
- **Remember** something: “Remember that I prefer morning trains”
- **Find** what you noted: “Search my notes for marathon”, or “List my notes”
- **Look into** something in the background: “Look into good places to camp”
- Say “remind me”, “undo” or “help”"""
DELETE = (
    "I only take back what I did myself: say “undo” for the last of it. To delete something else, open **Notes** and "
    "choose the note. I have changed nothing now."
)
UNKNOWN = f"I did not understand that, because I only follow a small script. I have changed nothing.\n\n{CAN_DO}"
ACROSS = (
    "A real model would look across your goals here and say what comes next. I only follow a script; *Home* shows what "
    "was last done in each, and what waits for you."
)
WHAT_ABOUT = "What shall the note be about? For example: “Create a note about a weekend in Lisbon”."

_PUNCTUATION = " .,:;!?\"'“”‘’"
_ARTICLE = re.compile(r"^(?:(?:a|an|the|my|our|some)\s+)+", re.I)
_NEEDS = re.compile(
    r"^(?:what|everything|all|the things) (?:that )?(?:i|we|you)(?:'ll| will)? need (?:for|to)\s+(.+)$", re.I
)
_BACKGROUND = re.compile(r"[\s,]*\bin the background\b", re.I)


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, and the thought that is shown before it."""

    thought: str
    tool: str
    arguments: dict[str, JsonValue]


type Step = Say | Call


class Rule(NamedTuple):
    """`first` gets the first group of `pattern` that matched, without punctuation around it."""

    pattern: re.Pattern[str]
    first: Callable[[str], Step]


def first_step(text: str) -> Step:
    """Return what to do about the user's words. The first rule that fits decides."""
    for rule in _RULES:
        if found := rule.pattern.search(text):
            return rule.first(next(filter(None, found.groups()), "").strip(_PUNCTUATION))
    return Say(UNKNOWN)


def subject_of(words: str) -> str:
    """Return `words` without articles before and punctuation around them."""
    bare = words.strip(_PUNCTUATION)
    return _ARTICLE.sub("", bare) or bare


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def title_of(about: str) -> str:
    """Return a title for a note: "what I need for a trip" becomes "Trip: what I need"."""
    if needs := _NEEDS.match(about):
        return f"{capital(clip(subject_of(needs[1]), 80))}: what I need"
    return capital(clip(subject_of(about), 80))


def _create_note(thought: str, title: str, body: str) -> Call:
    return Call(thought, "create_note", {"title": title, "body": body})


def _note(about: str) -> Step:
    return _create_note(f"A note will help here: {clip(about, 80)}.", title_of(about), checklist(about))


def _write_down(words: str) -> Step:
    return _create_note("I write this down as it was said.", capital(clip(words, 60)), capital(words))


def _remember(words: str) -> Step:
    return Call("This is worth keeping.", "manage_learning", {"text": capital(words)})


def _remind(words: str) -> Step:
    body = f"{capital(words)}\n\nWritten down on request. A time can be set under Schedule, beside the goal."
    return _create_note("I cannot ring a bell, but I can write it down.", f"Reminder: {clip(words, 80)}", body)


def _search(query: str) -> Step:
    return Call("I look through the notes.", "search_notes", {"query": subject_of(query)})


def _list(_: str) -> Step:
    return Call("I look at which notes there are.", "list_notes", {})


def _undo(_: str) -> Step:
    return Call("I look at what I have done.", "list_recent_actions", {})


def _look_into(words: str) -> Step:
    subject = subject_of(_BACKGROUND.sub("", words))
    instructions = (
        f"Look into {subject}. Search the notes first, then write a report with what you found and next steps."
    )
    arguments: dict[str, JsonValue] = {"title": f"Look into {clip(subject, 80)}", "instructions": instructions}
    return Call("This can be done in the background.", "create_task", arguments)


def _say(text: str) -> Callable[[str], Step]:
    return lambda _: Say(text)


def _rule(first: Callable[[str], Step], *patterns: str) -> Rule:
    return Rule(re.compile("|".join(patterns), re.I | re.S), first)


_START = r"^(?:(?:please|can you|could you|would you|will you|and|so|now|ok|okay|hey|hi|hello)[,!.]?\s+)*"
_MAKE = r"(?:create|make|write|add|start|draft|take|save|prepare)(?: me| us)?"
_FIND = r"(?:search|find|look up|look for|look|check|show)(?: me)?"
_NOTES = r"(?:(?:for|in|through|among|from) )?(?:(?:all|of|my|the|our|a|any) )*notes?"
_RULES = (
    _rule(_undo, _START + r"(?:undo|revert|take (?:it|that) back)\b"),
    _rule(_say(DELETE), _START + r"(?:delete|remove)\b"),
    _rule(
        _write_down,
        _START + r"(?:note|write|jot|put) (?:(?:this|that|it) )?down(?: that|:)?\s+(.+)",
        _START + _MAKE + r" (?:a |another )?note(?::| that| to)\s+(.+)",
        _START + r"(?:save|keep) (?:this|that):?\s+(.+)",
        _START + r"note(?::| that)\s+(.+)",
    ),
    _rule(
        _note,
        _START + _MAKE + r" (?:a |an |another |some )?(?:(?:new|short|quick|good|little) )*"
        r"(?:note|list|checklist|plan)s?(?: (?:about|on|of|for|with))?:?\s+(.+)",
        _START + _MAKE + r" (?:a |an |the )?((?:packing|shopping|to-?do|guest|reading) list\b.*)",
        r"\b(?:i'd like|i want|i need|give me) (?:a |another )(?:note|checklist) (?:about|on|of|for)\s+(.+)",
        _START + r"(?:a |new |another )*(?:note|checklist)(?: (?:about|on|of|for))\s+(.+)",
    ),
    _rule(_search, r"\bwhat do (?:you|i|we) (?:know|remember|have)(?: written)?(?: down)? (?:about|on) (.+)"),
    _rule(_remember, _START + r"(?:remember|don[’']?t forget|do not forget|keep in mind)(?: that| to|:|,)?\s+(.+)"),
    _rule(_remind, r"\bremind me(?: again)?(?: to| about| of| that|:)?\s+(.+)"),
    _rule(
        _list,
        r"\b(?:list|show)(?: me)? (?:(?:all|of|my|the) )*notes\b(?! (?:about|on|for|with|of))",
        r"\b(?:what|which) notes\b",
        r"^(?:my )?notes\W*$",
        r"\bwhat(?:’s|'s| is) in (?:my|the) notes",
    ),
    _rule(
        _search,
        rf"\b{_FIND} {_NOTES} (?:about|for|on|with|of|that mentions?)\s+(.+)",
        rf"\b{_FIND}(?: for)? (.+?) (?:in|among) (?:my |the |our )?notes",
        r"\bwhat (?:do|did|are) my notes (?:say )?(?:about|on) (.+)",
        _START + r"search (?:my |the )?notes?:?\s+(.+)",
        r"\b(?:do i have|is there) (?:a note|notes|any notes|anything) (?:about|on) (.+)",
    ),
    _rule(_say(ACROSS), r"\bacross (?:all )?my goals\b"),
    _rule(_look_into, r"\b(?:look into|research|investigate|dig into|find out(?: more)?(?: about)?)\s+(.+)"),
    _rule(_search, _START + r"(?:search|find|look up|look for)(?: for)?\s+(.+)"),
    _rule(
        _say(CAN_DO),
        _START + r"help\b",
        r"\bwhat (?:can|could) (?:you|i)\b",
        r"\bhow does (?:this|it) work|\bwho are you",
    ),
    _rule(_say("You are welcome. Tell me what comes next."), _START + r"(?:thanks|thank you|cheers|great|perfect)\b"),
    _rule(
        _say(f"Hello! What shall we work on?\n\n{CAN_DO}"), r"^(?:hello|hi|hey|good (?:morning|afternoon|evening))\b"
    ),
    _rule(_say("pong"), r"^ping\W*$"),
    _rule(_say(WHAT_ABOUT), r"\bnote\b|\bchecklist\b"),
)

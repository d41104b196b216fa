"""When a run turns in circles (mission B2): which calls are not executed any more, and what the model is told.

A call is known by its tool and its arguments, whatever the order of their keys. It is in vain when it can bring nothing
that the run does not know already:

- the third time, when it only reads and brought the same twice (arguments that differ in case, punctuation, the order
  of words or in numbers alone are the same question), or when it acts, whatever it answers: an answer with a new id is
  no news;
- when it closes a circle of two or three calls, of which none brought anything new the second time (A-B-A-B).

What changes the world makes old answers doubtful: after a call that acts and had not been made before, whatever was
read may be read again. A tool that declares itself `pollable` is never in vain.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, JsonValue

from memory.messages import ToolUse
from tools.base import Effect, Tool
from tools.signature import digest

# How many calls are looked back on, how often one may be in vain, how long a circle may be (mission B2).
LOOKED_BACK: Final = 10
ATTEMPTS: Final = 2
CIRCLES: Final = (2, 3)
# The guard is kept with the run, so its digests are short.
DIGITS: Final = 18
# More than this reaches no user in one run (case LOO-03).
MESSAGES: Final = 3

# These say what they have done. What any other does is not known: it may be a way to look.
ACTS: Final = frozenset({Effect.LOCAL, Effect.IDEMPOTENT, Effect.VERIFIABLE})

IN_VAIN: Final = (
    "Not executed: you have made this call before and it brought nothing new. Do not make it again. Use what you know, "
    "try something else, or tell the user what keeps you."
)
IN_CIRCLES: Final = (
    "Not executed: you are going round in a circle of calls that bring nothing new. Use what you know, try something "
    "else, or tell the user what keeps you."
)
SAID: Final = "Not sent again: the user has this message already."
SAID_ENOUGH: Final = f"Not sent: {MESSAGES} messages have been sent to the user in this run. End your turn."
WARNING: Final = (
    "(You have made this call twice, with nothing new the second time. A third time it will not be executed.)"
)


class Seen(BaseModel):
    """
    call: digest of the call. kin: of the question that it asks, of the words that it says; blank for others.
    result: digest of the answer, blank until there is one.
    reads, acts: whether it only reads; whether it is known to act. Neither: nobody knows.
    malformed: it could not even be read as a call. stale: the world has changed since.
    """

    tool: str
    position: int
    call: str
    kin: str = ""
    reads: bool = False
    acts: bool = False
    pollable: bool = False
    speaks: bool = False
    result: str = ""
    failed: bool = False
    blocked: bool = False
    malformed: bool = False
    news: bool = False
    stale: bool = False


class LoopGuard(BaseModel):
    """What one run has called, kept with the run: it survives the worker.

    step, now: the calls of the step that is under way. recent: those of the steps before.
    acted: which calls have acted. barred: calls that are not executed any more, and whether for good.
    fruitless, failed, blocked, malformed: see the properties of the same purpose, without the step that is under way.
    """

    step: int = -1
    now: list[Seen] = []
    recent: list[Seen] = []
    acted: set[str] = set()
    barred: dict[str, bool] = {}
    said: int = 0
    tool: str = ""
    fruitless: int = 0
    failed: int = 0
    blocked: int = 0
    malformed: int = 0

    @property
    def failures(self) -> int:
        """How many replies in a row had only calls that failed. A blocked call has failed."""
        return self.failed + 1 if self.now and all(seen.failed for seen in self.now) else 0

    @property
    def blocks(self) -> int:
        """How many replies had a call that was blocked."""
        return self.blocked + any(seen.blocked for seen in self.now)

    @property
    def malformations(self) -> int:
        """How many replies in a row had only malformed calls."""
        return self.malformed + 1 if self.now and all(seen.malformed for seen in self.now) else 0

    @property
    def same_tool(self) -> tuple[str, int]:
        """The tool that was used last, and in how many replies in a row it alone was used and brought nothing new;
        the reply that brought something is the first of them."""
        names = {seen.tool for seen in self.now}
        if len(names) != 1:
            return "", 0
        (name,) = names
        goes_on = name == self.tool and not any(seen.news for seen in self.now)
        return name, self.fruitless + 1 if goes_on else 1

    def admit(self, step: int, position: int, call: ToolUse, tool: Tool[Any] | None) -> str:
        """Take note of a call before it is executed; those of a step in order.

        Args:
            tool: None when the call cannot be executed anyway.

        Returns:
            Why it must not be executed, in words for the model; blank when it may be.
        """
        if step != self.step:
            self._begin(step)
        seen = _seen(position, call, tool)
        why = self._objection(seen) if tool else ""
        if why:
            seen.blocked = seen.failed = True
            self.barred[seen.call] = seen.acts
        self.now.append(seen)
        return why

    def note(self, position: int, answer: str, *, failed: bool) -> str:
        """Take note of what a call of the step came to. Returns a warning for the model, blank when there is none."""
        seen = next(each for each in self.now if each.position == position)
        seen.result, seen.failed = _digest(answer), failed
        seen.news = not failed and (seen.news or self._is_news(seen))
        if seen.news and not seen.reads:
            self._world_changed(seen)
        return WARNING if not seen.pollable and not seen.speaks and self._is_in_vain(seen) else ""

    def _begin(self, step: int) -> None:
        self.failed, self.blocked, self.malformed = self.failures, self.blocks, self.malformations
        self.tool, self.fruitless = self.same_tool
        self.recent = [*self.recent, *self.now][-LOOKED_BACK:]
        self.step, self.now = step, []

    def _objection(self, seen: Seen) -> str:
        if seen.speaks:
            return self._objection_to_words(seen)
        if seen.pollable:
            return ""
        if seen.call in self.barred or self._is_in_vain(seen):
            return IN_VAIN
        return IN_CIRCLES if any(self._closes_circle(seen, length) for length in CIRCLES) else ""

    def _objection_to_words(self, seen: Seen) -> str:
        if seen.kin in self.acted:
            return SAID
        if self.said >= MESSAGES:
            return SAID_ENOUGH
        self.acted.add(seen.kin)
        self.said += 1
        return ""

    def _known(self) -> list[Seen]:
        return [seen for seen in [*self.recent, *self.now][-LOOKED_BACK:] if not seen.stale]

    def _is_in_vain(self, seen: Seen) -> bool:
        """Whether one more call like this would be."""
        known = [each for each in self._known() if not each.blocked]
        if not seen.reads:
            return sum(each.call == seen.call for each in known) >= ATTEMPTS
        same = [each.result for each in known if each.kin == seen.kin][-ATTEMPTS:]
        return len(same) == ATTEMPTS and len(set(same)) == 1

    def _closes_circle(self, seen: Seen, length: int) -> bool:
        tail = [*self._known(), seen][-2 * length :]
        first, second = [each.call for each in tail[:length]], [each.call for each in tail[length:]]
        if len(tail) < 2 * length or first != second or len(set(first)) == 1:
            return False
        return not any(each.blocked or each.pollable or each.news for each in tail[length:])

    def _is_news(self, seen: Seen) -> bool:
        if seen.pollable:
            return True
        if not seen.reads:
            return seen.call not in self.acted
        others = (each for each in self._known() if each is not seen and each.tool == seen.tool)
        return all(each.result != seen.result for each in others)

    def _world_changed(self, by: Seen) -> None:
        self.acted.add(by.call)
        for seen in (*self.recent, *self.now):
            if seen is not by and seen.result and not (seen.acts and not seen.failed):
                seen.stale = True
        self.barred = {call: for_good for call, for_good in self.barred.items() if for_good}


def _seen(position: int, call: ToolUse, tool: Tool[Any] | None) -> Seen:
    seen = Seen(tool=call.name, position=position, call=digest(call.name, call.arguments)[:DIGITS])
    seen.malformed = call.problem is not None
    if tool is not None:
        seen.reads, seen.acts = tool.effect is Effect.PURE, tool.effect in ACTS
        seen.pollable, seen.speaks = tool.pollable, tool.speaks
        seen.kin = _digest(call.name, *_gist(call.arguments)) if seen.reads or seen.speaks else ""
    return seen


def _gist(value: JsonValue, name: str = "") -> list[str]:
    """What arguments ask for: the words of each text, in no order; how much and from where does not matter."""
    match value:
        case str():
            return [f"{name}={' '.join(sorted(re.findall(r'\w+', value.casefold()))) or value}"]
        case Mapping():
            return [part for key in sorted(value) for part in _gist(value[key], f"{name}.{key}")]
        case Sequence():
            return [part for each in value for part in _gist(each, name)]
    return []


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=DIGITS // 2).hexdigest()

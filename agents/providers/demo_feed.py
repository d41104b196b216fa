"""How the demonstration writes the feed: goal by goal, what the facts say."""

import re
from typing import Any
from xml.sax.saxutils import unescape

from agents.providers.demo_rules import Call, Say, Step
from memory.text import clip

_FACT = re.compile(r"^\[(\w+)\] ([^:]+): (.+)$", re.M)
_GOAL = "Goal: "


def inside(tag: str, text: str) -> str:
    """What stands between the first such tag and the last that closes it; empty when there is none."""
    return text.partition(f"<{tag}>")[2].rpartition(f"</{tag}>")[0]


def feed_step(said: str, *, written: bool) -> Step | None:
    """The next step of a run that writes the feed; None when there is nothing of a feed in what was said."""
    material = inside("feed", said)
    if not material:
        return None
    if written:
        return Say("The feed is written.")
    goals = [part for part in unescape(material).split("\n\n") if part.startswith(_GOAL)]
    titles = [goal.partition("\n")[0].removeprefix(_GOAL) for goal in goals]
    items = [item for goal in goals[:7] if (item := _item(goal))]
    brief = f"Something has come about on {', '.join(titles[:3])}{' and others' if len(titles) > 3 else ''}."
    return Call("I put together what has come about.", "write_feed", {"brief": clip(brief, 1_000), "items": items})


def _item(goal: str) -> Any:
    facts = _FACT.findall(goal)[:12]
    if not facts:
        return None
    said = next((fact for fact in facts if fact[1] == "It said"), facts[0])
    kind = "decision" if any(fact[1] == "It asks" for fact in facts) else "progress"
    others = [f"- {clip(text, 150)}" for _, _, text in facts if text != said[2]]
    title = clip(said[2].partition(". ")[0], 120)
    return {"kind": kind, "title": title, "body": "\n".join(others), "evidence": [fact[0] for fact in facts]}

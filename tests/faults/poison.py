"""F14: whatever people write and models answer, the conversation goes on afterwards."""

import json
import uuid
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from tests.faults.rules import LOST, Violation
from tests.faults.site import Site
from tests.faults.trial import Tally, judged
from tests.llm_script import DONE, F, Raw

NASTY = st.sampled_from(
    ["\0", "\ud83d", "\udfe1", "\\u0000", "\u2028", "\ufffe", "<|im_end|>", "\x1b[2J", "\u202e", "%s{}"]
)
TEXT = st.lists(st.one_of(NASTY, st.text(st.characters(exclude_categories=()), max_size=20)), max_size=6).map("".join)
HUGE = st.sampled_from([1, 1, 1, 1, 3_000])
VALUE = st.recursive(
    st.none() | st.booleans() | st.floats() | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
ARGUMENTS = st.one_of(
    TEXT,
    st.dictionaries(TEXT, VALUE, max_size=3).map(json.dumps),
    st.sampled_from(["", "{", "[]", "null", "{}{}", '{"title": "a", "title": "b"}', '{"body": 1e999}']),
    st.builds(lambda title, body: json.dumps({"title": title, "body": body}), TEXT, TEXT),
)
NAME = st.one_of(st.sampled_from(["create_note", "jot", "mail", "send_message"]), TEXT)


def poisoned(site: Site, rounds: int, dice: Random) -> Tally:
    """F14, STO-01, STO-02: NUL, surrogates, huge and malformed texts from both sides; then a plain message."""
    goals, found = site.goals(1), list[Violation]()

    @seed(dice.getrandbits(32))
    @settings(
        max_examples=rounds,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(said=TEXT, answered=TEXT, times=HUGE, name=NAME, arguments=ARGUMENTS)
    def talk(said: str, answered: str, times: int, name: str, arguments: str) -> None:
        marker, client = f"[{uuid.uuid4()}]", uuid.uuid4()
        site.mind.scripted[marker] = iter([_called(name, arguments), _spoken(answered * times)])
        site.door.say(goals[0], f"{marker} {said * times}"[:90_000], client)
        healthy = site.quiet(goals, 30)
        del site.mind.scripted[marker]
        assert site.mind.asked.pop(marker, None), "the poison was not taken"
        run = site.door.send(goals[0], "jot").run
        if not healthy or not site.quiet(goals, 30) or _status(site, run) != "succeeded":
            found.append(Violation(LOST, "a conversation is stuck", repr((said, answered, times, name, arguments))))

    with site.worker():
        talk()
    return judged(site, "F14 poisoned content", goals, rounds, also=found)


def _called(name: str, arguments: str) -> Raw:
    call = {"index": 0, "id": f"call_{uuid.uuid4().hex[:8]}", "type": "function"}
    function = {"name": name, "arguments": arguments}
    return Raw([_chunk({"role": "assistant", "tool_calls": [{**call, "function": function}]}), F("tool_calls"), DONE])


def _spoken(text: str) -> Raw:
    return Raw([_chunk({"role": "assistant", "content": text}), F("stop"), DONE])


def _chunk(delta: dict[str, Any]) -> bytes:
    """With the escapes of Python's json, which writes half of a pair as a server of JavaScript does."""
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return f"data: {json.dumps({'id': 'c1', 'choices': [choice]})}\n\n".encode()


def _status(site: Site, run: str) -> str:
    row = site.database.execute("SELECT status FROM memory_agentrun WHERE id = %s", [run]).fetchone()
    return str(row[0]) if row else ""

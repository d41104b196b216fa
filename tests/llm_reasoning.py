"""What vendors of reasoning models want back with a history in Chat Completions, or refuse to take."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.llm_steps import Json

ANY_SEAL = "skip_thought_signature_validator"


@dataclass
class Wants:
    """A vendor that refuses a step without the thoughts of all steps before it, or without the seal of each call of
    this turn; or one that does not know the field of thoughts."""

    what: Literal["thoughts", "seals", "nothing"]
    _sent: dict[str, Json] = field(default_factory=dict)

    def seal(self, calls: Sequence[Json]) -> None:
        if self.what == "seals" and calls:
            calls[0]["extra_content"] = {"google": {"thought_signature": f"c2VhbA==/{calls[0]['id']}"}}

    def sent(self, data: bytes) -> None:
        """Take in a streamed answer."""
        told: Json = {"thoughts": ""}
        for delta in _deltas(data):
            told["thoughts"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls") or ():
                if "id" in call:
                    self._sent[call["id"]] = told
                    told.setdefault("seal", call.get("extra_content"))

    def violation(self, messages: Sequence[Json]) -> str:
        said = [message for message in messages if message.get("role") == "assistant"]
        if self.what == "nothing":
            bad = any("reasoning_content" in each for each in said)
            return "'messages.2': property 'reasoning_content' is unsupported" if bad else ""
        if self.what == "thoughts":
            bad = any(self._lacks_thoughts(each) for each in said)
            return "The `reasoning_content` in the thinking mode must be passed back to the API." if bad else ""
        last = max(at for at, message in enumerate(messages) if message.get("role") == "user")
        bad = any(self._lacks_seal(each) for each in messages[last:])
        return "Function call is missing a thought_signature in functionCall parts." if bad else ""

    def _lacks_thoughts(self, message: Json) -> bool:
        told = str(message.get("reasoning_content") or "")
        known = [self._sent[call["id"]] for call in message.get("tool_calls") or () if call["id"] in self._sent]
        return not told.strip() or any(each["thoughts"] not in ("", told) for each in known)

    def _lacks_seal(self, message: Json) -> bool:
        if not (calls := message.get("tool_calls")):
            return False
        seal = calls[0].get("extra_content")
        known = self._sent.get(calls[0]["id"])
        return seal != known["seal"] if known else seal != {"google": {"thought_signature": ANY_SEAL}}


def _deltas(data: bytes) -> Iterator[Json]:
    for line in data.split(b"\n"):
        if line.startswith(b"data: {"):
            yield from (choice["delta"] for choice in json.loads(line[6:])["choices"])

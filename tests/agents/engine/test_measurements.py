"""What an agent measures: written down with its source, told to it, and undone (mission H1)."""

from collections.abc import Callable
from datetime import date

from agents.undoing import take_back
from goals import measuring
from goals.models import Goal, Measurement
from memory.models import AgentRun
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]

LATER = date(2099, 1, 1)


def test_it_is_written_down_with_its_source_and_can_be_undone(goal: Goal, say: Say, llm: LLMServer) -> None:
    measuring.set_target(goal.thread, "Weight", 70, LATER, "kg")
    llm.script([Reply(calls=[("record_measurement", {"value": 78.5, "note": "on the scale"})]), Reply(text="Noted.")])
    say("I weigh 78.5 today")
    (found,) = Measurement.objects.for_user(goal.user)
    assert found.message is not None
    assert (found.value, found.author, found.message.content) == (78.5, "agent", "I weigh 78.5 today")
    assert "<target>\\nWeight: 70 kg by 2099-01-01.\\nNothing measured yet." in str(llm.requests[0].messages)
    assert "Measured last: 78.5 kg" in str(llm.requests[-1].messages[-1]["content"])
    take_back(AgentAction.objects.get(tool="record_measurement"), goal.user)
    assert not Measurement.objects.exists()


def test_without_a_target_nothing_is_measured(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[("record_measurement", {"value": 5})]), Reply(text="No.")])
    say("Five")
    assert "Nothing is measured here" in str(llm.requests[-1].messages[-1]["content"])
    assert not Measurement.objects.exists()


def test_what_lies_ahead_is_not_measured(goal: Goal, say: Say, llm: LLMServer) -> None:
    measuring.set_target(goal.thread, "Weight", 70, LATER)
    llm.script([Reply(calls=[("record_measurement", {"value": 5, "day": "2098-01-01"})]), Reply(text="No.")])
    say("Five")
    assert "lies ahead" in str(llm.requests[-1].messages[-1]["content"])
    assert not Measurement.objects.exists()

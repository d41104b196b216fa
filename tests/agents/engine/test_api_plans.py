"""The plans of agents over the API (missions A7 and A8)."""

from django.test import Client

from agents.plans import PlannedStep, PlannedTask, make_plan
from agents.services import assistant_of
from agents.undoing import take_back
from goals.models import Goal
from tests.agents.engine.test_plans import NOTE, PLAN, Say, closes, does
from tests.factories import bearer
from tests.llm_server import LLMServer
from tools.models import AgentAction


def test_a_device_reads_the_plan(goal: Goal, say: Say, llm: LLMServer, client: Client) -> None:
    make_plan(assistant_of(goal.user).thread, [PlannedTask(title="Rest", subtasks=[PlannedStep(title="Sleep")])])
    does(say, llm, PLAN, NOTE, closes(("note", "Shoes"), reason="Red ones."))
    headers = bearer(goal.user)
    shoes, buy = client.get(f"/api/v1/goals/{goal.pk}/plan", headers=headers).json()["tasks"]
    task, first = buy["task"], shoes["subtasks"][0]
    assert (task["number"], task["title"], task["status"]) == ("2", "Buy", "open")
    assert (first["number"], first["status"], first["proof_gone"]) == ("1.1", "done", False)
    assert (first["reason"], first["evidence"], first["closed_at"] is None) == ("Red ones.", ["Shoes"], False)
    take_back(AgentAction.objects.get(tool="create_note"), goal.user)
    answer = client.get(f"/api/v1/goals/{goal.pk}/plan", headers=headers).json()
    assert answer["tasks"][0]["subtasks"][0]["proof_gone"]
    (rest,) = client.get("/api/v1/agent/plan", headers=headers).json()["tasks"]
    assert [each["title"] for each in rest["subtasks"]] == ["Sleep"]

"""Whole pieces of work, from the user's words to the answer: planned, done in the workspace, run in the sandbox, proven
step by step, and taken back (missions A7, A8, D5). And none of it is done because a model says so."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from pytest_django import Settings

from agents.engine import jobs
from goals.models import Goal
from tests.factories import think_with
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tools.sandbox import box
from tools.sandbox.folder import Folder

pytestmark = [
    pytest.mark.faults,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(bool(box.missing_program()), reason=f"{box.missing_program()} is not there"),
]

type Call = tuple[str, dict[str, Any]]
type Json = dict[str, Any]
type Ask = Callable[[str], Json]

HELLO = 'from pathlib import Path\n\nprint("Hello, world, from", Path.cwd())\n'

GAME = """\
import sys

BEATS = {"rock": "scissors", "scissors": "paper", "paper": "rock"}
mine, yours = sys.argv[1:]
if mine == yours:
    print("A draw.")
else:
    print("You win." if yours == BEATS[mine] else "You lose.")
"""
CHECK = 'if not {mine, yours} <= BEATS.keys():\n    sys.exit("A move is rock, paper or scissors.")\nif mine == yours:'

PROJECT = '[project]\nname = "maths"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["src"]\n'
MATHS = '''\
"""Sums and primes."""

import math


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def is_prime(n: int) -> bool:
    return all(n % each for each in range(2, n))
'''
MENDED = MATHS.replace("import math\n\n\n", "\n").replace("return all", "return n > 1 and all")
TESTS = """\
from maths import is_prime, mean


def test_mean():
    assert mean([1, 2, 6]) == 3


def test_primes():
    assert [n for n in range(1, 12) if is_prime(n)] == [2, 3, 5, 7, 11]
"""


def plans(*tasks: tuple[str, list[tuple[str, str]]]) -> Call:
    return (
        "make_plan",
        {
            "tasks": [
                {"title": title, "subtasks": [{"title": step, "tool": tool} for step, tool in steps]}
                for title, steps in tasks
            ]
        },
    )


def writes(path: str, content: str) -> Call:
    return ("write_file", {"path": path, "content": content})


def runs(command: str) -> Call:
    return ("run_cmd", {"command": command})


def closes(subtask: str, *evidence: tuple[str, str]) -> Call:
    named = [{"kind": kind, "name": name} for kind, name in evidence]
    return (
        "mark_subtask_complete",
        {"subtask": subtask, "success": True, "reason": "It is done.", "evidence": named},
    )


RUN = ("action", "run_cmd")
HELLO_PLAN = plans(("A hello world script", [("Write hello.py", "write_file"), ("Run it", "run_cmd")]))
WRITTEN, PLAYED, REFUSED = (
    ("Write game.py", "write_file"),
    ("Play", "run_cmd"),
    ("Refuse what is no move", "write_file"),
)
MATHS_PLAN = plans(
    ("The package", [("Write src/maths", "write_file"), ("Write its tests", "write_file")]),
    ("Its quality", [("Let the tests pass", "run_cmd"), ("Let ruff be content", "run_cmd")]),
)


def having_read(*words: str, then: Reply) -> Callable[[Request], Reply]:
    """A model that goes on only when it was told so by the results of its last calls."""

    def step(request: Request) -> Reply:
        told = "\n".join(results(request)[-4:])
        missing = [each for each in words if each not in told]
        return Reply(f"I did not expect this: {told!r} lacks {missing}.") if missing else then

    return step


def results(request: Request) -> list[str]:
    return [str(message["content"]) for message in request.messages if message["role"] == "tool"]


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Settings) -> None:
    """With the Python, the pytest and the ruff that these tests themselves run by."""
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    own = dict.fromkeys([sys.prefix, sys.base_prefix])
    settings.WAYMARK_COMMAND_FOLDERS = [folder for folder in own if not folder.startswith("/usr")]
    settings.WAYMARK_COMMAND_SECONDS = 100  # of a machine that has others to serve


@pytest.fixture
def ask(goal: Goal, api: Client, llm: LLMServer, rung: list[UUID]) -> Ask:
    """Ask for something, and approve each command when the agent wants to run it; returns the run, over."""
    think_with(goal.user, llm.url)

    def ask(text: str) -> Json:
        sent = post(api, f"goals/{goal.pk}/messages", content=text)
        while rung:
            jobs.run(str(rung.pop(0)))
            for each in api.get("/api/v1/approvals?state=requested").json()["results"]:
                post(api, f"approvals/{each['id']}/decide", decision="approve", hash=each["hash"])
        run: Json = api.get(f"/api/v1/runs/{sent['run']['id']}").json()
        return run

    return ask


def post(api: Client, path: str, **body: str) -> Json:
    answer = api.post(f"/api/v1/{path}", body, content_type="application/json")
    assert answer.status_code in (200, 202), answer.content
    found: Json = answer.json()
    return found


def plan_of(goal: Goal, api: Client) -> dict[str, str]:
    """Each number of the plan and how it stands."""
    tasks = api.get(f"/api/v1/goals/{goal.pk}/plan").json()["tasks"]
    items = [item for each in tasks for item in (each["task"], *each["subtasks"])]
    return {item["number"]: "undone" if item["proof_gone"] else item["status"] for item in items}


def commands(llm: LLMServer) -> list[int]:
    """The exit codes that the model was told, in order."""
    return [int(found[1]) for told in results(llm.requests[-1]) if (found := re.match(r"Exit code (\d+) after", told))]


def files(goal: Goal) -> dict[str, str]:
    """What the user finds in the workspace, without what tools keep for themselves."""
    root = Folder(goal.thread_id).files
    found = {str(each.relative_to(root)): each for each in root.rglob("*") if each.is_file()}
    return {name: found[name].read_text() for name in sorted(found) if not name.startswith(".")}


def assert_finished(goal: Goal, api: Client, run: Json, answer: str) -> None:
    """The user has the answer, the plan is closed by evidence, and all of it can be taken back at once."""
    assert (run["status"], run["error"]) == ("succeeded", "")
    said = [each for each in api.get(f"/api/v1/goals/{goal.pk}/messages").json()["results"] if each["content"]]
    assert answer in [each["content"] for each in said if each["source"] == "agent"]
    assert set(plan_of(goal, api).values()) == {"done"}
    undone = post(api, f"runs/{run['id']}/undo")
    left = [each for each in undone["results"] if not each["possible"]]
    assert {each["action"]["tool"] for each in left} == {"make_plan", "mark_subtask_complete"}
    assert list(Folder(goal.thread_id).files.rglob("*")) == []
    assert {state for number, state in plan_of(goal, api).items() if "." not in number} == {"undone"}


def test_a_hello_world_script_takes_three_rounds(goal: Goal, api: Client, ask: Ask, llm: LLMServer) -> None:
    answer = "`hello.py` says hello."
    llm.script(
        [
            Reply(calls=[HELLO_PLAN, writes("hello.py", HELLO), runs("python3 hello.py")]),
            having_read(
                "Hello, world, from /workspace",
                then=Reply(calls=[closes("1.1", ("file", "hello.py")), closes("1.2", RUN)]),
            ),
            Reply(answer),
        ]
    )
    run = ask("Write a hello world script")
    assert files(goal) == {"hello.py": HELLO}
    assert commands(llm) == [0]
    assert run["iterations"] == len(llm.requests) <= 3
    assert_finished(goal, api, run, answer)


def test_a_game_of_rock_paper_scissors_is_planned_anew_on_the_way(
    goal: Goal, api: Client, ask: Ask, llm: LLMServer
) -> None:
    answer = "Play with `python3 game.py rock paper`."
    mended = GAME.replace("if mine == yours:", CHECK)
    llm.script(
        [
            Reply(calls=[plans(("The game", [WRITTEN, PLAYED])), writes("game.py", GAME)]),
            Reply(
                calls=[
                    closes("1.1", ("file", "game.py")),
                    runs("python3 game.py lizard rock"),
                    runs("python3 game.py rock scissors"),
                ]
            ),
            having_read(
                "KeyError: 'lizard'",
                "You win.",
                then=Reply(
                    calls=[
                        closes("1.2", RUN),
                        plans(("The game", [WRITTEN, PLAYED, REFUSED])),
                        writes("game.py", mended),
                        runs("python3 game.py lizard rock"),
                    ]
                ),
            ),
            having_read(
                "1.1 Write game.py [done]",
                "1.2 Play [done]",
                "A move is rock, paper or scissors.",
                then=Reply(calls=[closes("1.3", ("file", "game.py"))]),
            ),
            Reply(answer),
        ]
    )
    run = ask("Write a rock-paper-scissors game")
    assert files(goal) == {"game.py": mended}
    assert commands(llm) == [1, 0, 1]
    assert run["iterations"] == len(llm.requests) <= 8
    assert_finished(goal, api, run, answer)


def test_a_maths_package_is_mended_until_its_tests_and_ruff_are_content(
    goal: Goal, api: Client, ask: Ask, llm: LLMServer
) -> None:
    answer = "The package is in `src/maths`; its tests pass."
    module, tests = "src/maths/__init__.py", "tests/test_maths.py"
    llm.script(
        [
            Reply(calls=[MATHS_PLAN, writes("pyproject.toml", PROJECT), writes(module, MATHS)]),
            Reply(calls=[closes("1.1", ("file", module)), writes(tests, TESTS)]),
            Reply(calls=[closes("1.2", ("file", tests)), runs("ruff check ."), runs("pytest -q")]),
            having_read(
                "F401",
                "FAILED tests/test_maths.py::test_primes",
                then=Reply(calls=[closes("2.1", RUN), writes(module, MENDED)]),
            ),
            having_read(
                "Subtask 2.1 stays open.",
                "it ended without success.",
                then=Reply(calls=[runs("ruff check ."), closes("2.2", RUN), runs("pytest -q")]),
            ),
            having_read("All checks passed!", "2 passed", then=Reply(calls=[closes("2.1", RUN)])),
            Reply(answer),
        ]
    )
    run = ask("Write a maths package with tests, and let ruff check it")
    assert files(goal) == {"pyproject.toml": PROJECT, module: MENDED, tests: TESTS}
    assert commands(llm) == [1, 1, 0, 0]
    assert run["iterations"] == len(llm.requests) <= 12
    assert_finished(goal, api, run, answer)


LIES = {
    "a script that was never written": (
        [HELLO_PLAN, closes("1.1"), closes("1.1", ("file", "hello.py")), closes("1.2", RUN)],
        {"1": "open", "1.1": "open", "1.2": "open"},
        ["Name what proves it", "There is no file 'hello.py'", "there was no action 'run_cmd'"],
    ),
    "a game that was never played": (
        [
            plans(("The game", [WRITTEN, PLAYED])),
            writes("game.py", GAME),
            closes("1.1", ("file", "game.py")),
            closes("1.2", ("action", "write_file")),
            runs("cat game.py"),
            closes("1.2", RUN),
        ],
        {"1": "open", "1.1": "done", "1.2": "open"},
        ["has proved subtask 1.1 already", "proves nothing: it changed nothing."],
    ),
    "a package whose tests fail": (
        [
            MATHS_PLAN,
            writes("src/maths/__init__.py", MATHS),
            closes("1.1", ("file", "src/maths/__init__.py")),
            closes("1.2", ("file", "tests/test_maths.py")),
            runs("ruff check ."),
            closes("2.1", RUN),
            closes("2.2", ("action", "pytest")),
        ],
        {"1": "open", "1.1": "done", "1.2": "open", "2": "open", "2.1": "open", "2.2": "open"},
        ["There is no file 'tests/test_maths.py'", "it ended without success.", "there was no action 'pytest'"],
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_step_that_is_only_said_to_be_done_stays_open(
    lie: str, goal: Goal, api: Client, ask: Ask, llm: LLMServer
) -> None:
    calls, plan, refusals = LIES[lie]
    llm.script([*(Reply(calls=[call]) for call in calls), Reply("All of it is done.")])
    assert ask("Go on")["status"] == "succeeded"
    assert plan_of(goal, api) == plan
    refused = [told for told in results(llm.requests[-1]) if told.startswith("Error: Subtask ")]
    assert [words in told for told, words in zip(refused, refusals, strict=True)] == [True] * len(refusals)

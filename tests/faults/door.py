"""The public door: the API over HTTP, as a device uses it that repeats what was not acknowledged."""

import http.client
import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

AGAIN_SECONDS = 180.0
TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Goal:
    id: str
    thread: uuid.UUID


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as it was acknowledged."""

    client: uuid.UUID
    message: str
    run: str
    created: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for approval, and the hash of what was shown."""

    call: str
    shown: str


@dataclass
class Door:
    """
    accepted: thread and client id of each message that was acknowledged, which must never be lost.
    """

    address: str
    token: str
    accepted: set[tuple[uuid.UUID, uuid.UUID]] = field(default_factory=set)

    def post(self, path: str, body: dict[str, Any], timeout: float = 30) -> tuple[int, Any]:
        """
        Raises:
            OSError: no answer, so nobody knows whether it was done. Refusals and the server's errors are answers.
        """
        request = urllib.request.Request(
            f"{self.address}/api/v1/{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, orjson.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error

    def get(self, path: str) -> Any:
        with self._opened(path) as response:
            return orjson.loads(response.read())

    def cursor(self, goal: Goal) -> str:
        """Where to take the goal's events up after what has been said so far."""
        with self._opened(f"goals/{goal.id}/messages") as response:
            return str(response.headers["Last-Event-ID"])

    def _opened(self, path: str) -> http.client.HTTPResponse:
        address = f"{self.address}/api/v1/{path}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {self.token}"})
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=30)
        return answer

    def send(self, goal: Goal, plan: str, client: uuid.UUID | None = None) -> Sent:
        """Say `do: PLAN`, again and again with the same client id until it is acknowledged."""
        return _until_it_works(partial(self.once, goal, plan, client or uuid.uuid4()))

    def once(self, goal: Goal, plan: str, client: uuid.UUID) -> Sent:
        """
        Raises:
            OSError: it was not acknowledged, or refused because too many wait already.
        """
        return self.say(goal, f"[{client}]\ndo: {plan}", client)

    def say(self, goal: Goal, content: str, client: uuid.UUID) -> Sent:
        """Any text. Raises as `once`."""
        began = time.monotonic()
        body = {"content": content, "client_message_id": str(client)}
        status, answer = self.post(f"goals/{goal.id}/messages", body)
        if status >= 500 or status == TOO_MANY:
            raise OSError(f"{status} {answer!r}")
        assert status in (200, 202), (status, answer)
        self.accepted.add((goal.thread, client))
        run = (answer["run"] or {}).get("id", "")
        return Sent(client, answer["message"]["id"], run, status == 202, time.monotonic() - began)

    def stop(self, run: str) -> float:
        """Stop a run; returns when that was acknowledged, by the clock of the wall."""

        def stop() -> float:
            status, answer = self.post(f"runs/{run}/stop", {})
            if status != 200:
                raise OSError(f"{status} {answer!r}")
            return time.time()

        return _until_it_works(stop)

    def questions(self) -> list[Question]:
        """What waits for a person's word."""
        return [Question(each["id"], each["hash"]) for each in self.get("approvals?state=requested")["results"]]

    def decide(self, question: Question, decision: str) -> int:
        """`approve` or `reject`; returns the status: 200, or 400 when it was decided otherwise or is over.

        Raises:
            OSError: no answer, or the server's error.
        """
        status, answer = self.post(f"approvals/{question.call}/decide", {"decision": decision, "hash": question.shown})
        if status >= 500:
            raise OSError(f"{status} {answer!r}")
        return status


def _until_it_works[T](call: Callable[[], T]) -> T:
    """As a device does that was not answered, or told to come back later."""
    until = time.monotonic() + AGAIN_SECONDS
    while True:
        try:
            return call()
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)

"""The public door: the API over HTTP, as a device uses it that repeats what was not acknowledged."""

import http.client
import json
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.processes import wait_until

AGAIN_SECONDS = 60.0


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
        client, until = client or uuid.uuid4(), time.monotonic() + AGAIN_SECONDS
        while True:
            try:
                return self.once(goal, plan, client)
            except OSError:
                if time.monotonic() > until:
                    raise
            time.sleep(0.1)

    def once(self, goal: Goal, plan: str, client: uuid.UUID) -> Sent:
        """
        Raises:
            OSError: it was not acknowledged.
        """
        return self.say(goal, f"[{client}]\ndo: {plan}", client)

    def say(self, goal: Goal, content: str, client: uuid.UUID) -> Sent:
        """Any text. Raises as `once`."""
        began = time.monotonic()
        body = {"content": content, "client_message_id": str(client)}
        status, answer = self.post(f"goals/{goal.id}/messages", body)
        if status >= 500:
            raise OSError(f"{status} {answer!r}")
        assert status in (200, 202), (status, answer)
        self.accepted.add((goal.thread, client))
        run = (answer["run"] or {}).get("id", "")
        return Sent(client, answer["message"]["id"], run, status == 202, time.monotonic() - began)

    def stop(self, run: str) -> float:
        """Stop a run; returns when that was acknowledged, by the clock of the wall."""
        done: list[float] = []

        def stopped() -> bool:
            try:
                status, _ = self.post(f"runs/{run}/stop", {})
            except OSError:
                return False
            if status == 200:
                done.append(time.time())
            return status == 200

        wait_until(stopped, AGAIN_SECONDS)
        return done[0]

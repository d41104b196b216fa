"""What a conversation of 40 turns sends to its model: with and without compaction, with and without a prompt cache.

    .venv/bin/python -m bench.growth_tokens

1,500 characters each way, over the public API and through real processes. The model counts by bytes: the tokens of a
request, and of what it has in common with the one before, from its first byte on, which is what vendors cache.
"""

import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.batch import Driver
from bench.system import OWNER, environment_of
from config.embedded import embedded_servers
from tests.llm_prefix import BYTES_PER_TOKEN, PrefixCache, one_conversation
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer

TURNS = 40
LENGTH = 1_500
PATIENCE_SECONDS = 60
NEVER = 100_000_000
# Of a session, after which its older turns become a summary. The default, which 40 such turns never reach, and less.
SESSION_TOKENS = (NEVER, 80_000, 12_000)
# What a token from the cache costs, as a part of one that is not: that of most vendors.
CACHED_PRICE = 0.1
SUMMARY = "You sum up"


@dataclass(slots=True)
class Course:
    """Tokens of the requests of one conversation, and of the summaries made beside it."""

    session_tokens: int
    prompts: list[int] = field(default_factory=list)
    cached: list[int] = field(default_factory=list)
    summaries: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.prompts) + sum(self.summaries)

    @property
    def with_cache(self) -> float:
        """All of it in tokens at full price."""
        return self.total - (1 - CACHED_PRICE) * sum(self.cached)


class Api:
    """One person's device."""

    def __init__(self, address: str, password: str) -> None:
        self._address, self._headers = address, {"Content-Type": "application/json"}
        token = self.ask("auth/login", {"email": OWNER, "password": password})["token"]
        self._headers["Authorization"] = f"Bearer {token}"

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._address}/api/v1/{path}", data, self._headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def say(self, goal: str, text: str) -> None:
        """Return when it is answered. Raises: RuntimeError: it was not."""
        run = self.ask(f"goals/{goal}/messages", {"content": text})["run"]["id"]
        until = time.monotonic() + PATIENCE_SECONDS
        while (status := self.ask(f"runs/{run}")["status"]) != "succeeded":
            if status in ("failed", "cancelled") or time.monotonic() > until:
                raise RuntimeError(f"the run {status}")
            time.sleep(0.02)


def words(number: int) -> str:
    """Text of exactly LENGTH characters, another for each number."""
    return (f"In turn {number} this was said of the half marathon in May, shoe {number * 7}. " * 30)[: LENGTH - 1] + "."


def run(session_tokens: int, turns: int = TURNS) -> Course:
    course = Course(session_tokens)
    model = PrefixCache(lambda request: Reply(words(len(request.raw)), chunk_size=500))
    with LLMServer() as server, _waymark(server.url, session_tokens) as api:
        server.always(model)
        goal = api.ask("goals", {"title": "Run a half marathon"})["id"]
        for number in range(turns):
            api.say(goal, words(number))
            if number:  # of a single turn nothing older can be summed up
                _let_it_sum_up(server, model, session_tokens)
        if server.violations:
            raise RuntimeError(server.violations[0])
    _read(course, server.requests, model)
    return course


def _let_it_sum_up(server: LLMServer, model: PrefixCache, session_tokens: int) -> None:
    """People take longer to write than a summary takes to be made."""
    if model.sizes[-1] / BYTES_PER_TOKEN > session_tokens:
        until, before = time.monotonic() + PATIENCE_SECONDS, _summaries(server.requests)
        while _summaries(server.requests) == before and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)


def _summaries(requests: Sequence[Request]) -> int:
    return sum(_is_summary(request) for request in requests)


def _is_summary(request: Request) -> bool:
    return one_conversation(request).startswith(SUMMARY)


def _read(course: Course, requests: Sequence[Request], model: PrefixCache) -> None:
    for request, size, cached in zip(requests, model.sizes, model.cached, strict=True):
        if _is_summary(request):
            course.summaries.append(size // BYTES_PER_TOKEN)
        else:
            course.prompts.append(size // BYTES_PER_TOKEN)
            course.cached.append(cached // BYTES_PER_TOKEN)


@contextmanager
def _waymark(model_url: str, session_tokens: int) -> Iterator[Api]:
    directory = Path(tempfile.mkdtemp(prefix="waymark-bench-"))
    directory.chmod(0o711)  # as root, PostgreSQL runs as another user and must get in
    try:
        with embedded_servers(directory, durable=False) as servers:
            password = secrets.token_urlsafe(16)
            settings = environment_of(directory, servers.database_url, servers.redis_url, model_url, None)
            settings |= {"WAYMARK_SESSION_TOKENS": str(session_tokens), "WAYMARK_OWNER_PASSWORD": password}
            with Driver("bench.waymark", settings) as waymark:
                yield Api(json.loads(waymark.first_line)["address"], password)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def table(courses: Sequence[Course]) -> str:
    head = "| compaction | prompt tokens in turn 40 | in all 40 | of these cached | summaries | in all, at full price |"
    lines = [f"{head} with a cache |", "|---|--:|--:|--:|--:|--:|--:|"]
    for course in courses:
        name = "off" if course.session_tokens == NEVER else f"above {course.session_tokens:,} tokens"
        cells = [f"{course.prompts[-1]:,}", f"{sum(course.prompts):,}", f"{sum(course.cached):,}"]
        made = f"{len(course.summaries)} ({sum(course.summaries):,})"
        lines.append("| " + " | ".join([name, *cells, made, f"{course.total:,}", f"{course.with_cache:,.0f}"]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ["MALLOC_ARENA_MAX"] = "2"
    sys.stdout.write(table([run(tokens) for tokens in SESSION_TOKENS]) + "\n")

"""The limit: a tool loop written straight, as one would without any of Waymark's promises, except that each step is
written to PostgreSQL before the next. One asyncio loop, the openai package over aiohttp, one commit a write."""

import asyncio
import os
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from openai import AsyncOpenAI, DefaultAioHttpClient
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from bench.batch import Batch, answer_orders, at_once
from bench.model import milliseconds_since, stamps

type Json = dict[str, Any]

CONNECTIONS = 16
SYSTEM = "You help the user to reach a goal. Use the tools where they help, then answer."
ASKED = "Create a note about what I need for a half marathon in May"
TABLE = """
CREATE TABLE IF NOT EXISTS step (
  conversation uuid, place int, message jsonb, created_at timestamptz DEFAULT clock_timestamp(),
  PRIMARY KEY (conversation, place))
"""
WRITE = "INSERT INTO step (conversation, place, message) VALUES (%s, %s, %s)"


def _function(name: str, description: str, *parameters: str) -> Json:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": [*parameters]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    _function("search_notes", "Search the notes of this conversation.", "query"),
    _function("create_note", "Create a note that the user keeps.", "title", "body"),
]
ACTIONS: dict[str, Callable[..., str]] = {
    "search_notes": lambda query: f"No note holds {query!r}.",
    "create_note": lambda title, body: f"Created the note {title!r} with {len(body)} characters.",
}


class Limit:
    def __init__(self, pool: AsyncConnectionPool, model_url: str) -> None:
        self._pool = pool
        self._client = AsyncOpenAI(
            base_url=model_url, api_key="none", max_retries=0, http_client=DefaultAioHttpClient()
        )
        self._prompt_tokens = 0

    async def batch(self, turns: int, lanes: int) -> Batch:
        batch = Batch()
        await at_once([lambda: self._turn(batch)] * turns, lanes, batch)
        return batch

    async def prompt_tokens(self) -> int:
        """Of all calls so far."""
        return self._prompt_tokens

    async def close(self) -> None:
        await self._client.close()

    async def _turn(self, batch: Batch) -> None:
        conversation, messages = uuid.uuid4(), [{"role": "system", "content": SYSTEM}]

        async def add(message: Json) -> None:
            messages.append(message)
            async with self._pool.connection() as connection:
                await connection.execute(WRITE, [conversation, len(messages), Jsonb(message)])

        await add({"role": "user", "content": ASKED})
        while True:
            reply = await self._call(messages, batch)
            await add(reply)
            for call in reply.get("tool_calls") or ():
                result = ACTIONS[call["function"]["name"]](**orjson.loads(call["function"]["arguments"]))
                await add({"role": "tool", "tool_call_id": call["id"], "content": result})
            if "tool_calls" not in reply:
                return

    async def _call(self, messages: list[Json], batch: Batch) -> Json:
        text = ""
        calls: dict[int, Json] = {}
        began, first = time.perf_counter(), True
        create: Callable[..., Awaitable[Any]] = self._client.chat.completions.create
        stream = await create(
            model="m", messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            if chunk.usage:
                self._prompt_tokens += chunk.usage.prompt_tokens
            for choice in chunk.choices:
                if first:
                    batch.first_events.append((time.perf_counter() - began) * 1000)
                    first = False
                if choice.delta.content:
                    text += choice.delta.content
                    batch.lags += map(milliseconds_since, stamps(choice.delta.content))
                for piece in choice.delta.tool_calls or ():
                    _grow(calls, piece)
        return {"role": "assistant", "content": text or None} | ({"tool_calls": [*calls.values()]} if calls else {})


def _grow(calls: dict[int, Json], piece: Any) -> None:
    """Add a piece of a tool call to the calls so far, by index."""
    function = {"name": piece.function.name, "arguments": ""}
    call = calls.setdefault(piece.index, {"id": piece.id, "type": "function", "function": function})
    call["function"]["arguments"] += piece.function.arguments or ""


async def main() -> None:
    settings = {"autocommit": True, "prepare_threshold": 0}
    async with AsyncConnectionPool(os.environ["DATABASE_URL"], kwargs=settings, max_size=CONNECTIONS) as pool:
        async with pool.connection() as connection:
            await connection.execute(TABLE)
        limit = Limit(pool, os.environ["OPENAI_BASE_URL"])
        await answer_orders("ready", {"batch": limit.batch, "prompt_tokens": limit.prompt_tokens})
        await limit.close()


if __name__ == "__main__":
    asyncio.run(main())

"""What the model's client costs: the SDKs' own typed streams beside ours, for each dialect, in CPU time of one thread.

    .venv/bin/python -m bench.streams

Each server runs in a process of its own. Each round measures all of them, one after the other, so that a machine that
is slower for a while is so for all; the figures are the medians of the rounds.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import anthropic
import openai

from agents.providers.base import Endpoint, ModelRequest, Reply
from agents.providers.pool import lease
from memory.messages import Message, ToolResult, tool, user
from tests.llm_ollama import OllamaServer
from tests.llm_openrouter import OpenRouterServer
from tests.llm_script import Reply as Said, Request, bench_step
from tests.llm_server import LLMServer
from tests.llm_steps import Json, Scripted
from tools.base import ToolSpec
from tools.cancel import CancelToken

ROUNDS = 3
TURNS = 60
LONG_CALLS = 3
CHUNKS = 400
GAP_SECONDS = 0.002
SYSTEM = "You help with a goal. " * 100
SCHEMA: Json = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS = [ToolSpec(f"tool_{number}", "Does something. " * 10, SCHEMA) for number in range(10)]
AT_ONCE, ONE_BY_ONE = "all at once", "one by one"


class Streaming(LLMServer):
    """Two calls and an answer, or many chunks when the user asks for them."""

    def _scripted(self, request: Request) -> Scripted:
        asked = request.last_user_text
        if asked not in (AT_ONCE, ONE_BY_ONE):
            return bench_step(request)
        return Said("word " * CHUNKS, gap=GAP_SECONDS if asked == ONE_BY_ONE else 0)


class OllamaStreaming(Streaming, OllamaServer):
    pass


class OpenRouterStreaming(Streaming, OpenRouterServer):
    pass


SERVERS: dict[str, type[Streaming]] = {
    "openai": Streaming, "anthropic": Streaming, "openrouter": OpenRouterStreaming, "ollama": OllamaStreaming,
}  # fmt: skip


@dataclass(frozen=True)
class Client:
    """`ask` sends one message and what follows from it, and returns when the answer is there."""

    name: str
    ask: Callable[[str], object]


def ours(kind: str, url: str) -> Callable[[str], object]:
    endpoint = Endpoint(kind, url, "key", anywhere=True)

    def ask(text: str) -> None:
        messages: list[Message] = [user(text)]
        with lease(endpoint) as provider:
            while messages[-1].role != "assistant":
                *_, reply = provider.stream(ModelRequest("m", SYSTEM, messages, TOOLS), CancelToken())
                assert isinstance(reply, Reply)
                results = [tool(ToolResult(id=call.id, content="done")) for call in reply.message.calls]
                messages += [reply.message, *results]

    return ask


def openai_sdk(url: str) -> Callable[[str], object]:
    client = openai.OpenAI(api_key="key", base_url=url, max_retries=0)
    tools: list[Json] = [
        {"type": "function", "function": {"name": each.name, "description": each.description, "parameters": SCHEMA}}
        for each in TOOLS
    ]

    def step(messages: list[Json]) -> list[Json]:
        call: Json = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        text = ""
        asked: Json = {"model": "m", "messages": messages, "tools": tools, "stream_options": {"include_usage": True}}
        for chunk in client.chat.completions.create(stream=True, **asked):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    call["id"] = piece.id or call["id"]
                    if piece.function:
                        call["function"]["name"] += piece.function.name or ""
                        call["function"]["arguments"] += piece.function.arguments or ""
        if not call["id"]:
            return [{"role": "assistant", "content": text}]
        result = {"role": "tool", "tool_call_id": call["id"], "content": "done"}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, result]

    return lambda text: _until_answered(
        step, [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    )


def anthropic_sdk(url: str) -> Callable[[str], object]:
    client = anthropic.Anthropic(api_key="key", base_url=url.removesuffix("/v1"), max_retries=0)
    tools = [{"name": each.name, "description": each.description, "input_schema": SCHEMA} for each in TOOLS]

    def step(messages: list[Json]) -> list[Json]:
        blocks: list[Json] = []
        asked: Json = {"model": "m", "messages": messages, "tools": tools, "system": SYSTEM, "max_tokens": 1_000}
        for event in client.messages.create(stream=True, **asked):
            if event.type == "content_block_start":
                blocks.append(
                    event.content_block.model_dump(include={"type", "text", "id", "name"}) | {"arguments": ""}
                )
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                blocks[-1]["text"] += event.delta.text
            elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                blocks[-1]["arguments"] += event.delta.partial_json
        return _told(blocks)

    return lambda text: _until_answered(step, [{"role": "user", "content": [{"type": "text", "text": text}]}])


def _told(blocks: list[Json]) -> list[Json]:
    for block in blocks:
        arguments = block.pop("arguments")
        if block["type"] == "tool_use":
            block["input"] = json.loads(arguments)
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "done"} for each in ids]
    told = [{"role": "assistant", "content": blocks}]
    return [*told, {"role": "user", "content": results}] if results else told


def _until_answered(step: Callable[[list[Json]], list[Json]], messages: list[Json]) -> None:
    while messages[-1]["role"] != "assistant":
        messages += step(messages)


def spent(client: Client, text: str, times: int) -> float:
    """Seconds of CPU per message."""
    client.ask(text)
    started = time.thread_time()
    for _ in range(times):
        client.ask(text)
    return (time.thread_time() - started) / times


def measure(urls: dict[str, str]) -> None:
    """Vendors without an SDK of their own in use here are measured with our client alone."""
    sdks = {"openai": openai_sdk, "anthropic": anthropic_sdk}
    clients = []
    for kind, url in urls.items():
        if kind in sdks:
            clients.append(Client(f"{kind}, its SDK's stream", sdks[kind](url)))
        clients.append(Client(f"{kind}, ours", ours(kind, url)))
    figures: dict[str, list[tuple[float, float, float]]] = {client.name: [] for client in clients}
    for _ in range(ROUNDS):
        for client in clients:
            turn = spent(client, "Note: new shoes", TURNS) * 1e3
            chunks = [spent(client, how, LONG_CALLS) / CHUNKS * 1e6 for how in (ONE_BY_ONE, AT_ONCE)]
            figures[client.name].append((turn, chunks[0], chunks[1]))
    print("| client | CPU ms per turn | CPU µs per chunk, one by one | CPU µs per chunk, all at once |")
    print("|---|--:|--:|--:|")
    for name, rounds in figures.items():
        turn, one, many = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {name} | {turn:.2f} | {one:.0f} | {many:.0f} |")


async def serve(kind: str) -> None:
    server = SERVERS[kind]()
    server.keep_log = False
    await server.start()
    print(server.url, flush=True)
    await asyncio.Event().wait()


@contextmanager
def started(kind: str) -> Iterator[str]:
    """A server in a process of its own; its base URL."""
    command = [sys.executable, "-m", "bench.streams", "serve", kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def main() -> None:
    with ExitStack() as stack:
        measure({kind: stack.enter_context(started(kind)) for kind in SERVERS})


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[2])) if sys.argv[1:2] == ["serve"] else main()

"""An MCP server over stdio that is as noisy as real ones are (case MCP-02). Arguments: a file that notes each start and
each call of `die`."""

import json
import os
import subprocess
import sys
import time
from typing import Any

NOTES = sys.argv[1]
MARK = f"600.{time.time_ns() % 1_000_000_000}"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ok", "die", "env", "leave_child")]


def note(word: str) -> None:
    with open(NOTES, "a", encoding="utf-8") as notes:
        notes.write(f"{word}\n")


def say(body: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\r\n")
    sys.stdout.buffer.flush()


def noise() -> None:
    sys.stdout.buffer.write(b'Server v1.2 ready!\n\n{"not":"jsonrpc"}\n\xff\xfe\n')
    sys.stdout.buffer.flush()
    say({"id": 9_999, "result": {}})
    say({"method": "notifications/of_no_known_kind", "params": {}})


def processes() -> int:
    return sum(each.isdigit() for each in os.listdir("/proc"))


def call(name: str) -> str:
    if name == "die":
        note("die")
        os._exit(1)
    if name == "leave_child":
        subprocess.Popen(["sleep", MARK], start_new_session=True)
        return MARK
    return json.dumps({**os.environ, "cwd": os.getcwd(), "processes": processes()}) if name == "env" else "fine"


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        info = {"name": "noisy", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": call(params["name"])}]}
    raise KeyError(method)


note("start")
noise()
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    noise()
    sys.stderr.write("complaint " * 100_000)
    sys.stderr.flush()
    try:
        say({"id": asked["id"], "result": answer(asked["method"], asked.get("params") or {})})
    except KeyError:
        say({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})

"""An MCP server over stdio that is as noisy as real ones are (case MCP-02). Arguments: a file that notes each start and
each call of `die`; “quiet”, to complain of nothing by itself."""

import ctypes
import json
import os
import socket
import subprocess
import sys
import time
from typing import Any

NOTES, QUIET = sys.argv[1], "quiet" in sys.argv
MARK = f"600.{time.time_ns() % 1_000_000_000}"
TOOLS = [
    {"name": name, "inputSchema": {"type": "object"}}
    for name in ("ok", "die", "env", "leave_child", "try", "say", "long", "grow")
]


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


def tried(what: str, where: str) -> str:
    """What came of something that may not be allowed."""
    try:
        if what == "read":
            with open(where, encoding="utf-8") as file:
                return file.read()
        if what == "write":
            with open(where, "a", encoding="utf-8") as file:
                file.write("written")
        if what == "connect":
            socket.create_connection(("127.0.0.1", int(where)), 5).close()
        if what == "call":  # by its number
            library = ctypes.CDLL(None, use_errno=True)
            if library.syscall(*map(int, where.split()), 0, 0, 0) < 0:
                raise OSError(ctypes.get_errno(), "refused")
        return "done"
    except OSError as error:
        return f"refused: {error}"


def call(name: str, given: dict[str, Any]) -> str:
    if name == "try":
        return tried(given["what"], given["where"])
    if name == "say":
        sys.stderr.buffer.write(given["text"].encode())
        sys.stderr.flush()
    if name == "long":
        return "x" * int(given["size"])
    if name == "grow":
        hold = bytearray(int(given["size"]))
        hold[::4096] = b"x" * len(hold[::4096])
        time.sleep(60)
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
        return {"content": [{"type": "text", "text": call(params["name"], params.get("arguments") or {})}]}
    raise KeyError(method)


note("start")
noise()
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    noise()
    if not QUIET:
        sys.stderr.write("complaint " * 100_000)
    sys.stderr.flush()
    try:
        say({"id": asked["id"], "result": answer(asked["method"], asked.get("params") or {})})
    except KeyError:
        say({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})

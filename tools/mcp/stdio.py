"""A program as a server: started in the sandbox, spoken to by its input and output, and gone with the connection
(threat T12).

The SDK has such a transport, too. It hands no descriptor on, so there is no filter of system calls; it has no end to a
line; and it does not tell which process it has started.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

import anyio
import structlog
from django.conf import settings

from tools.mcp.complaints import Complaints
from tools.mcp.programs import program_of, room_of
from tools.sandbox import seccomp, selftest
from tools.sandbox.box import walled
from tools.sandbox.watch import memory_of, processes_below

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 2.0
GRACE_SECONDS: Final = 2.0
"""That a program may take to end by itself once its input is closed."""


class NotStartable(Exception):
    """The program may not be started, or the sandbox does not hold here. The message is for people."""


@contextlib.asynccontextmanager
async def started(argv: tuple[str, ...], keep: Callable[[str], None]) -> AsyncIterator[tuple[Any, Any]]:
    """A program's streams, as the SDK has them.

    Args:
        keep: takes the end of what it has written to its error output, in a thread, now and then and at its end.

    Raises:
        NotStartable: before anything was started.
        OSError: the sandbox cannot be started.
    """
    program = program_of(argv)
    if program is None:
        raise NotStartable("The operator does not allow this program any more.")
    if why := await asyncio.to_thread(selftest.renew):
        raise NotStartable(f"Programs are withheld where the sandbox does not hold. {why}")
    said = Complaints(program.environment.values())
    with seccomp.program() as filter_:
        process = await asyncio.create_subprocess_exec(
            *walled(room_of(program), program.command, seccomp=filter_),
            env=program.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=[filter_] if filter_ is not None else [],
            start_new_session=True,
            cwd="/",
            limit=settings.WAYMARK_MCP_BYTES,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    hearing, heard = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    asked, asking = anyio.create_memory_object_stream["SessionMessage"](0)
    draining = asyncio.create_task(said.drain(process.stderr))
    tasks = {
        draining,
        asyncio.create_task(_hear(process.stdout, hearing)),
        asyncio.create_task(_speak(process, asking)),
        asyncio.create_task(_watch(process, said, draining, keep)),
    }
    try:
        yield heard, asked
    finally:
        heard.close()
        asked.close()
        try:
            await _end(process)
        finally:
            _kill(process)
            _, late = await asyncio.wait({*tasks, asyncio.create_task(process.wait())}, timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()


async def _hear(source: asyncio.StreamReader, hearing: Any) -> None:
    """Messages, one on a line, until the program ends, nobody listens, or a line is longer than an answer may be. What
    comes then is read and forgotten, so that it need not wait."""
    async with hearing:
        with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await source.readline():
                await hearing.send(_parsed(line))
    while await source.read(65_536):
        pass


def _parsed(line: bytes) -> "SessionMessage | Exception":
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False))
    except ValueError as error:
        return error


async def _speak(process: asyncio.subprocess.Process, asking: Any) -> None:
    assert process.stdin is not None
    async with asking:
        try:
            async for each in asking:
                process.stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()
        except OSError:
            _kill(process)  # who does not listen will not answer


async def _watch(
    process: asyncio.subprocess.Process, said: Complaints, draining: asyncio.Task[None], keep: Callable[[str], None]
) -> None:
    """Until it has ended: end it when it takes more memory than commands may, and keep what it says."""
    most, processes = settings.WAYMARK_COMMAND_MEMORY, settings.WAYMARK_COMMAND_PROCESSES * 2
    has_ended = False
    while not has_ended:
        ended, _ = await asyncio.wait([draining], timeout=LOOK_SECONDS)
        has_ended = bool(ended)
        if memory_of(processes_below(process.pid, processes)) > most:
            said.add(f"\nIt was ended: it took more than {most:,} bytes of memory.\n".encode())
            _kill(process)
        if said.is_new and (words := said.last()):
            await asyncio.to_thread(keep, words)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Its input is closed, which tells it to end; all that it has started ends with it."""
    assert process.stdin is not None
    process.stdin.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()

"""A tool of an MCP server, as agents have it."""

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from pydantic import ConfigDict, ValidationError

from memory.text import clean, clip
from tools.base import (
    Arguments,
    BrokeOff,
    Effect,
    HowFar,
    Outcome,
    Reversal,
    Risk,
    Tool,
    ToolContext,
    ToolError,
    ToolSpec,
)
from tools.cancel import Cancelled
from tools.mcp import catalogue, loop, results, sessions
from tools.mcp.bearer import challenge_of, is_refusal
from tools.mcp.complaints import words_of
from tools.mcp.credentials import without_credentials, without_keys
from tools.mcp.definitions import Definition
from tools.mcp.transports import Target
from tools.mcp.words import wording
from tools.sandbox import selftest

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult

# Longer than a call may take, so that the call says itself what became of it.
MARGIN_SECONDS = 10.0
LONGEST_WORDS = 60
LONGEST_ERROR = 500


class Anything(Arguments):
    """The server checks them against a schema of its own."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Latest:
    """What a server said last of how far it is, told once."""

    def __init__(self) -> None:
        self._news: HowFar | None = None

    async def take(self, progress: float, total: float | None, message: str | None) -> None:
        known = total if total and isfinite(total) and total > 0 else None
        self._news = HowFar(progress if isfinite(progress) else 0, known, clip(clean(message or ""), LONGEST_WORDS))

    def tell(self, listener: Callable[[HowFar], None]) -> None:
        news, self._news = self._news, None
        if news is not None:
            listener(news)


class TookTooLong(BrokeOff):
    pass


class ServerWentAway(BrokeOff):
    pass


class StoppedMidway(BrokeOff):
    pass


class ServerBrokeDown(BrokeOff):
    """It has answered, and its answer does not say what became of the call."""


class McpTool(Tool[Anything]):
    """One accepted definition of one server.

    reads_only: its user says that it changes nothing. is_program: it runs in the sandbox of this machine.
    """

    Arguments = Anything
    is_work = True
    way_back = "Cannot be undone here; its server may have a way of its own"

    def __init__(
        self, server_id: UUID, server: str, definition: Definition, *, reads_only: bool, is_program: bool = False
    ) -> None:
        self.server_id = server_id
        self.in_sandbox = is_program
        self.server = server
        self.definition = definition
        self.name = definition.offered
        self.description = f"Tool of the MCP server {server}. {definition.description}".strip()
        self.wording = wording(server, definition.name)
        self.effect = Effect.PURE if reads_only else Effect.NON_IDEMPOTENT
        self.risk = Risk.ALLOWED if reads_only else Risk.RESTRICTED
        self.reversal = Reversal.NOTHING if reads_only else Reversal.COMPENSABLE
        self.timeout_seconds = settings.WAYMARK_MCP_SECONDS + settings.WAYMARK_MCP_CONNECT_SECONDS + MARGIN_SECONDS

    @property
    def source(self) -> str:
        return f"mcp: {self.server}"

    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description, self.definition.schema)

    def withheld(self) -> str:
        return selftest.reason() if self.in_sandbox else ""

    def tells_others(self, sources: Sequence[str]) -> bool:
        """Its arguments go to somebody; text of the same server may send them there, that of others may not."""
        return any(source != self.source for source in sources)

    def run(self, arguments: Anything, context: ToolContext) -> Outcome:
        """Raises: ToolError when nothing took effect, or when the server has said so; BrokeOff else."""
        given = arguments.model_dump(mode="json")
        target = catalogue.usable(
            context.user_id, self.server_id, self.definition, reads_only=self.effect is Effect.PURE
        )
        sent: list[bool] = []
        far = Latest()

        async def call(client: "Client", found: list[dict[str, Any]]) -> "CallToolResult | None":
            if not catalogue.still_is(self.definition, found):
                return None
            sent.append(True)
            return await client.call_tool(self.definition.name, given, settings.WAYMARK_MCP_SECONDS, far.take)

        seconds = self.timeout_seconds - MARGIN_SECONDS / 2
        try:
            result = loop.ask(sessions.using(target, call), seconds, context.cancel, partial(far.tell, context.tell))
        except ToolError:
            raise
        except sessions.Unreachable as error:
            words = clip(without_credentials(f"Nothing was done. {error}", target), LONGEST_ERROR)
            raise ToolError(words, (self.source,)) from error
        except Exception as error:
            if (challenge := challenge_of(error)) is not None:
                catalogue.asks_to_sign_in(self.server_id, challenge)
            raise self._broken(error, target, was_sent=bool(sent)) from error
        if result is None:
            catalogue.hold(self.server_id)
            raise ToolError(
                f"Nothing was done: the server {self.server} describes this tool differently now, so its tools are off "
                "until the user has looked at them."
            )
        said = results.text_of(result)
        if result.is_error:
            words = without_credentials(said, target) or "The server says that it failed."
            raise ToolError(words, (self.source,))
        return Outcome(without_keys(said, target), sources=(self.source,))

    def _broken(self, error: Exception, target: Target, *, was_sent: bool) -> Exception:
        """What to raise. Only reads: nothing can have happened, whatever went wrong."""
        if isinstance(error, Cancelled):
            return StoppedMidway(str(error)) if was_sent and self.effect is not Effect.PURE else error
        kind, how, said = _told(error)
        said = without_credentials(said, target)
        if kind is None or not was_sent or self.effect is Effect.PURE:
            return ToolError(f"{how[:1].upper()}{how[1:]}{f': {said}' if said else '.'}", (self.source,))
        return kind(how, said, (self.source,) if said else ())


def _told(error: Exception) -> tuple[type[BrokeOff] | None, str, str]:
    """What went wrong, in words of ours, and in the server's; None: it has refused the call, so nothing happened."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT

    if isinstance(error, TimeoutError):
        return TookTooLong, "the server took too long", ""
    if isinstance(error, ValidationError):
        return ServerBrokeDown, "the server failed", words_of(error)
    if not isinstance(error, MCPError):
        return ServerWentAway, "the connection to the server broke", ""
    if is_refusal(error):
        return None, "nothing was done", error.message
    if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
        return None, "the server did not take the call", error.message
    if error.code == REQUEST_TIMEOUT:
        return TookTooLong, "the server took too long", ""
    if error.code == CONNECTION_CLOSED:
        return ServerWentAway, "the server ended", ""
    return ServerBrokeDown, "the server failed", words_of(error)

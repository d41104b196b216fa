"""Tools that act on a world outside our database, where a test can count what really happened.

The world is a file to which each effect adds a line: it survives the death of whoever wrote it, and is the same for
all processes. What a call does after its effect is one of its arguments (`then`), so that a scripted model decides it.
"""

import os
import signal
import time
from pathlib import Path
from uuid import UUID

from tools.base import Arguments, Effect, Outcome, Reversal, Risk, Tool, ToolContext, ToolError, Wording

WORLD = "WAYMARK_TEST_WORLD"
TOOLS = [f"tests.world.{name}" for name in ("Post", "SendEmail", "Upsert", "Book", "Slow", "SlowDown", "OpenPage")]


class Killed(BaseException):
    """As good as kill -9 for the code that runs: nothing catches it."""


class World:
    """What has happened, in order: (tool, id of the call, text)."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def add(self, tool: str, call: UUID, text: str) -> None:
        line = f"{tool} {call} {text}\n".encode()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, line)
        os.close(descriptor)

    @property
    def events(self) -> list[tuple[str, str, str]]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [(tool, call, text) for tool, call, text in (line.split(" ", 2) for line in lines)]

    def texts(self, tool: str) -> list[str]:
        return [text for name, _, text in self.events if name == tool]

    def calls(self, tool: str) -> list[str]:
        return [call for name, call, _ in self.events if name == tool]


def here() -> World:
    return World(os.environ[WORLD])


class Deed(Arguments):
    """then: what comes after the effect: nothing, or drop (the answer is lost), hang (seconds), die, crash, fail."""

    text: str
    then: str = ""


class Acting(Tool[Deed]):
    description = "Act on the world."
    wording = Wording("mail", "Send", "Sending", "Sent", "Could not send")
    reversal = Reversal.COMPENSABLE
    Arguments = Deed

    def run(self, arguments: Deed, context: ToolContext) -> Outcome:
        if arguments.then == "fail":
            raise ToolError("The address is wrong; nothing was sent.")
        first = str(context.action_id) not in here().calls(self.name)
        self.act(arguments, context)
        if first:
            aftermath(arguments.then)
        return Outcome(f"Sent {arguments.text}.", arguments.text)

    def act(self, arguments: Deed, context: ToolContext) -> None:
        here().add(self.name, context.action_id, arguments.text)

    def subject(self, arguments: Deed) -> str:
        return arguments.text


def aftermath(then: str) -> None:
    """What befalls a call after its effect; only the first time that it runs."""
    what, _, seconds = then.partition(" ")
    match what:
        case "drop":
            raise ConnectionResetError("the answer was lost")
        case "hang":
            time.sleep(float(seconds))
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "crash":
            raise Killed


class Post(Acting):
    """Not restricted, so that what happens without a question can be counted."""

    name = "post"
    effect = Effect.NON_IDEMPOTENT
    timeout_seconds = 0.5


class SendEmail(Acting):
    name = "send_email"
    effect = Effect.NON_IDEMPOTENT
    reversal = Reversal.IRREVERSIBLE
    risk = Risk.RESTRICTED


class Upsert(Acting):
    """The same id twice is one effect."""

    name = "upsert"
    effect = Effect.IDEMPOTENT


class Book(Acting):
    """Its world can be asked. `text` "secret" cannot be looked up."""

    name = "book"
    effect = Effect.VERIFIABLE

    def probe(self, arguments: Deed, context: ToolContext) -> Outcome | None:
        if arguments.text == "secret" and len(here().calls("ask")) < 1:
            here().add("ask", context.action_id, "secret")
            raise ToolError("The other side does not answer.")
        booked = str(context.action_id) in here().calls(self.name)
        return Outcome(f"Found {arguments.text}.", arguments.text) if booked else None


class Pause(Arguments):
    seconds: float
    name: str = ""


class Slow(Tool[Pause]):
    """Reads for a while and ignores that it is to stop."""

    name = "slow"
    description = "Take a while."
    wording = Wording("clock", "Wait", "Waiting", "Waited", "Could not wait")
    timeout_seconds = 60.0
    Arguments = Pause

    def run(self, arguments: Pause, context: ToolContext) -> Outcome:
        here().add("begin", context.action_id, arguments.name)
        time.sleep(arguments.seconds)
        here().add("end", context.action_id, arguments.name)
        return Outcome(f"Waited {arguments.seconds:g} s.")


class SlowDown(Slow):
    """Must not run beside others; obeys its time-out."""

    name = "slow_down"
    parallel_safe = False
    timeout_seconds = 0.3

    def run(self, arguments: Pause, context: ToolContext) -> Outcome:
        here().add("begin", context.action_id, arguments.name)
        context.cancel.sleep(arguments.seconds)
        here().add("end", context.action_id, arguments.name)
        return Outcome("Waited.")


PAGES: dict[str, str] = {}
"""What strangers have written, by address; in this process only."""


class Address(Arguments):
    address: str


class OpenPage(Tool[Address]):
    """Reads what a stranger has written. An address that ends in "broken" answers with an error of theirs."""

    name = "open_page"
    description = "Read a page."
    wording = Wording("globe", "Read", "Reading", "Read", "Could not read")
    Arguments = Address

    def run(self, arguments: Address, context: ToolContext) -> Outcome:
        text = PAGES[arguments.address]
        if arguments.address.endswith("broken"):
            raise ToolError(text, [arguments.address])
        return Outcome(text, sources=[arguments.address])

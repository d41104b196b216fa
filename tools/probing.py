"""Looking up what became of an earlier call of a verifiable tool."""

from collections.abc import Callable
from functools import partial

import structlog

from memory.text import clean
from tools.attempts import Attempt, Result
from tools.base import ToolContext, ToolError
from tools.cancel import CancelToken
from tools.parallel import at_once, times_of

log = structlog.get_logger(__name__)

type Contexts = Callable[[CancelToken], ToolContext]


def look_up(attempt: Attempt, context: Contexts, stopped: CancelToken) -> Result | None:
    """Ask the tool. None: the call certainly did not happen. Takes at most the tool's time-out.

    Args:
        attempt: valid, of a verifiable tool.
    """
    assert attempt.tool is not None
    calls = [(partial(_asked, attempt, context), *times_of(attempt.tool))]
    answer = next((answer for _, answer in at_once(calls, stopped, stopped.check)), None)
    return answer[0] if answer else attempt.unknown("it could not be looked up in time")


def _asked(attempt: Attempt, context: Contexts, stop: CancelToken) -> tuple[Result | None]:
    assert attempt.tool is not None
    try:
        outcome = attempt.tool.probe(attempt.arguments, context(stop))
    except ToolError as error:
        return (attempt.unknown(clean(str(error)).rstrip(".")),)
    except Exception as error:
        log.exception("probe failed", tool=attempt.call.name)
        return (attempt.unknown(f"it could not be looked up ({type(error).__name__})"),)
    return (attempt.done(outcome) if outcome else None,)

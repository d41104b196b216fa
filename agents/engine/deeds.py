"""What a stopped run had done and what it had not, in words for its user."""

from collections.abc import Sequence

from tools.attempts import Result
from tools.models import ActionStatus

LEFT = {ActionStatus.CANCELLED: "Not done", ActionStatus.UNKNOWN: "Not known whether it happened"}


def account(finished: Sequence[Result]) -> str:
    done = [_deed(result) for result in finished if result.status is ActionStatus.DONE]
    text = f"Done before that: {'; '.join(done)}." if done else "Nothing had been done yet."
    for status, words in LEFT.items():
        if left := [_intent(result) for result in finished if result.status is status]:
            text += f" {words}: {'; '.join(left)}."
    return text


def _deed(result: Result) -> str:
    tool = result.attempt.tool
    return _small(f"{tool.wording.done if tool else result.attempt.call.name} {result.summary}")


def _intent(result: Result) -> str:
    tool, arguments = result.attempt.tool, result.attempt.arguments
    subject = tool.subject(arguments) if tool and arguments else ""
    return _small(f"{tool.wording.doing if tool else result.attempt.call.name} {subject}")


def _small(phrase: str) -> str:
    return f"{phrase[:1].lower()}{phrase[1:]}".strip()

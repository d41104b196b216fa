"""Facts about the workspace of an agent, for its context: what its calls have left there (mission A9). Nothing is
guessed, and nothing expected."""

import re
from collections.abc import Sequence
from typing import Final
from uuid import UUID
from xml.sax.saxutils import escape

from memory.text import clip
from tools import registry
from tools.builtin.commands import RunCmd
from tools.changes import UndoRecord
from tools.file_changes import KIND
from tools.models import ActionStatus, AgentAction
from tools.sandbox.beneath import OutOfReach, parts_of
from tools.sandbox.folder import Folder

LOOKED_AT: Final = 100
"""The last calls of an agent."""
FILES, COMMANDS, ERRORS = 30, 5, 3
_ENDED = re.compile(r"^Exit code (-?\d+) after ", re.MULTILINE)


def facts(thread_id: UUID) -> str:
    """Lines: which files are written, missing and removed, how the last commands ended, and the last errors."""
    calls = list(AgentAction.objects.filter(thread=thread_id, run__isnull=False).order_by("-created_at")[:LOOKED_AT])
    calls.reverse()
    lines = [*_files(thread_id, calls), *_commands(calls), *_errors(calls)]
    return escape("\n".join(lines))


def _files(thread_id: UUID, calls: Sequence[AgentAction]) -> list[str]:
    written: dict[str, bool] = {}
    for call in calls:
        if call.undo and not call.undone:
            for change in UndoRecord.model_validate(call.undo).changes:
                if change.kind == KIND:
                    written.pop(change.name, None)
                    written[change.name] = change.after is not None
    folder = Folder(thread_id)
    there = {path for path in written if _is_there(folder, path)}
    found = {
        "Written by you, and there": [path for path, by_you in written.items() if by_you and path in there],
        "Written by you, but missing": [path for path, by_you in written.items() if by_you and path not in there],
        "Removed by you": [path for path, by_you in written.items() if not by_you and path not in there],
    }
    return [f"{what}: {', '.join(paths[-FILES:])}" for what, paths in found.items() if paths]


def _is_there(folder: Folder, path: str) -> bool:
    try:
        folder.entry(parts_of(path))
    except (OutOfReach, OSError):
        return False
    return True


def _commands(calls: Sequence[AgentAction]) -> list[str]:
    ran = [call for call in calls if call.tool == RunCmd.name and call.status == ActionStatus.DONE]
    return [f"Ran {_command(call)}" for call in ran[-COMMANDS:]]


def _command(call: AgentAction) -> str:
    ended = _ENDED.search(call.output.partition("\nOutput:")[0])
    how = f"exit code {ended[1]}" if ended else "killed"
    return f"{clip(str(call.arguments.get('command')), 100)}: {how}"


def _errors(calls: Sequence[AgentAction]) -> list[str]:
    failed = [call for call in calls if call.status == ActionStatus.ERROR]
    return [f"Failed: {_error(call)}" for call in failed[-ERRORS:]]


def _error(call: AgentAction) -> str:
    """What a tool of others says of its failure was written by strangers."""
    own = registry.find(call.tool)
    return f"{call.tool}: {clip(call.error, 160)}" if own is not None and not own.foreign else call.tool

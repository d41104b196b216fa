"""Commands in the sandbox of the agent's workspace (mission D5, threat T13)."""

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final
from uuid import UUID

from django.conf import settings
from pydantic import Field

from memory.pool import DATABASE_AWAY, shortage
from memory.text import clip
from tools import files
from tools.base import (
    Arguments,
    Effect,
    Outcome,
    Reversal,
    Risk,
    Tool,
    ToolContext,
    ToolError,
    ToolSpec,
    Topic,
    Wording,
)
from tools.cancel import BY_USER
from tools.changes import Change, UndoRecord
from tools.file_models import Writer
from tools.file_settling import is_all_agents_own, remember_folders, settle, sources_of
from tools.sandbox import selftest
from tools.sandbox.disk import NEARLY_FULL, is_nearly_full
from tools.sandbox.listing import Scan
from tools.sandbox.run import Ended, Ending, NotStarted, run

# Of more files than this what a command did is not kept: nobody looks through such a list.
MOST_CHANGES: Final = 500
# What a shell would understand, and we do not.
_OPERATORS: Final = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"})
_NOT_FOUND: Final = 127
# Programs that write nothing, whatever they are asked for.
_READERS: Final = frozenset({"ls", "cat", "head", "tail", "wc", "grep", "diff", "du", "sha256sum"})
# Between the end of a command and that of its call: files are looked through twice.
_AROUND: Final = 60
# Of looking through them once, while somebody else may be at work there for as long as one waits.
_TRIES: Final = 3


# In characters, of which each takes four bytes at most: Linux gives no program a word of more than 128 KB.
LONGEST: Final = 30_000


class Command(Arguments):
    command: str = Field(
        max_length=LONGEST,
        description=(
            "The program and its arguments, quoted as for a shell; but there is none: no pipes, no redirection."
        ),
    )


class RunCmd(Tool[Command]):
    """Undoable, because a command can change nothing but the workspace, whose files are kept before it and compared
    after it. So a command that need not be approved can be taken back, as the start-up check asks."""

    name = "run_cmd"
    topic = Topic.FILES
    description = (
        "Run a program in a sandbox, in your workspace: no network, no input, nothing outside of the workspace. For "
        "example `grep -rn total src` or `python3 report.py`. Programs that can do anything need the user's approval."
    )
    wording = Wording("terminal", "Run a command", "Running a command", "Ran a command", "Could not run a command")
    effect = Effect.NON_IDEMPOTENT
    risk = Risk.RESTRICTED
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    timeout_seconds = settings.WAYMARK_COMMAND_SECONDS + _AROUND
    stopping_seconds = _AROUND
    in_sandbox = True
    code = frozenset({"command"})
    Arguments = Command

    def withheld(self) -> str:
        return selftest.reason()

    def spec(self) -> ToolSpec:
        """With what there is here, so that nobody loses a step, or an approval, on finding out."""
        spec, there = super().spec(), selftest.programs()
        if there is None:
            return spec
        has = [each for each in selftest.PROGRAMS if each in there]
        lacks = [each for each in selftest.PROGRAMS if each not in there]
        parts = [f"{verb}: {', '.join(names)}." for verb, names in (("Here are", has), ("Not here", lacks)) if names]
        return replace(spec, description=" ".join([spec.description, *parts]))

    def risk_of(self, arguments: Command) -> Risk:
        try:
            return risk_of(words_of(arguments.command))
        except ToolError:
            return Risk.RESTRICTED

    def is_contained(self, arguments: Command, context: ToolContext) -> bool:
        """What the operator has put down as harmless. Of that, too, some can write over a file, told to by an option or
        by a file of settings: then there must be no file of the user's."""
        if self.risk_of(arguments) is not Risk.ALLOWED:
            return False
        program = words_of(arguments.command)[0].rpartition("/")[2]
        return program in _READERS or is_all_agents_own(context.thread_id)

    def went_well(self, observation: str) -> bool:
        """How it ended is said first, after a label if there is one."""
        return any(line.startswith("Exit code 0 after ") for line in observation.splitlines()[:2])

    def counts_unchanged(self, arguments: Command) -> bool:
        """A check proves something, a look at what is there anyhow does not."""
        return words_of(arguments.command)[0].rpartition("/")[2] not in _READERS

    def subject(self, arguments: Command) -> str:
        return clip(arguments.command, 80)

    def run(self, arguments: Command, context: ToolContext) -> Outcome:
        if why := selftest.reason():
            raise ToolError(why)
        argv = words_of(arguments.command)
        if is_nearly_full():
            raise ToolError(f"{NEARLY_FULL} Nothing was run.")
        hand = files.Hand(Writer.COMMAND, context.sources)
        try:
            folder = files.ready(context.thread_id)
            _, before = settle(context.thread_id, files.Hand(Writer.USER, context.sources), keep=True)
            sources = sources_of(context.thread_id, before.files.values())
        except (files.FileRefused, OSError) as refused:
            raise ToolError(f"{files.reason(refused)} Nothing was run.") from refused
        except DATABASE_AWAY as error:
            raise ToolError(f"{shortage(error) or 'The database was away.'} Nothing was run.") from error
        if over := _over(before):
            raise ToolError(f"{over} Nothing was run. Delete files first.")
        context.cancel.check()
        try:
            ended = run(folder, argv, context.cancel)
        except NotStarted as error:
            raise ToolError(f"The sandbox cannot be started: {files.reason(error)} Nothing was run.") from error
        changes, after = _looked_up(context.thread_id, hand)
        remember_folders(context.thread_id, after.folders - before.folders)
        sources += sources_of(context.thread_id, after.files.values())
        record = _record(changes, after.odd - before.odd, whole=after.whole)
        told, summary = _told(ended, changes, _over(after)), _summary(arguments, ended)
        return Outcome(told, summary, record, sources=list(dict.fromkeys(sources)))


def _looked_up(thread_id: UUID, hand: files.Hand) -> tuple[list[Change], Scan]:
    """What a command has changed, also when it was killed: else that would be on no record, and nobody could undo it.

    Raises:
        FileRefused: somebody else is at work there all the time, or the agent is gone.
    """
    for _ in range(_TRIES - 1):
        with suppress(files.FileRefused):
            return settle(thread_id, hand, keep=False)
    return settle(thread_id, hand, keep=False)


def words_of(command: str) -> list[str]:
    """The program and its arguments.

    Raises:
        ToolError: there is none, quotes are open, or it is meant for a shell.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"The command cannot be read: {error}. Nothing was run.") from error
    if not words or "\0" in command:
        raise ToolError("There is no command. Nothing was run.")
    if operators := _OPERATORS.intersection(words):
        signs = " ".join(sorted(operators))
        raise ToolError(f"There is no shell here, so {signs} means nothing. Quote it, or run the programs one by one.")
    return words


def risk_of(argv: Sequence[str]) -> Risk:
    """The class of a command, by what the settings say of how it begins. A program that is named by its place is the
    same as by its name, and one in the workspace itself, however one gets there, is nobody's we know."""
    if "/" in argv[0] and (not argv[0].startswith(("/usr/", "/bin/", "/sbin/")) or ".." in argv[0].split("/")):
        return Risk.RESTRICTED
    words = [argv[0].rpartition("/")[2], *argv[1:]]
    if _matches(words, settings.WAYMARK_COMMANDS_FORBIDDEN):
        return Risk.FORBIDDEN
    if _matches(words, settings.WAYMARK_COMMANDS_RESTRICTED):
        return Risk.RESTRICTED
    return Risk.ALLOWED if _matches(words, settings.WAYMARK_COMMANDS_ALLOWED) else Risk.RESTRICTED


def _matches(words: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(_begins(words, pattern.split()) for pattern in patterns)


def _begins(words: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(words) >= len(pattern) > 0 and all(map(fnmatchcase, words, pattern))


def _record(changes: Sequence[Change], odd: int, *, whole: bool) -> UndoRecord | None:
    """whole: whether everything was looked at."""
    lasting = [f"It made {odd:,} links or other things that are no files; they stay."] if odd > 0 else []
    if not whole:
        lasting.append("There is more in the workspace than could be looked through; what it changed there stays.")
    if len(changes) > MOST_CHANGES:
        return UndoRecord(lasting=(f"It changed {len(changes):,} files, which is too many to put them back.", *lasting))
    return UndoRecord(changes=tuple(changes), lasting=tuple(lasting)) if changes or lasting else None


def _summary(arguments: Command, ended: Ended) -> str:
    how = "" if ended.code == 0 else f" (exit code {ended.code})" if ended.code is not None else f" ({_killed(ended)})"
    return f"{clip(arguments.command, 80)}{how}"


def _over(scan: Scan) -> str:
    """By how much there is too much in a workspace, as a sentence; empty when there is not."""
    most = settings.WAYMARK_WORKSPACE_BYTES
    if scan.bytes <= most:
        return ""
    return f"The workspace is full: it holds {files.in_words(scan.bytes)}, and may hold {files.in_words(most)}."


def _told(ended: Ended, changes: Sequence[Change], over: str) -> str:
    output = ended.output.text().strip("\n")
    lines = [_how_it_ended(ended), *([over] if over else ()), *_what_changed(changes)]
    if ended.output.dropped:
        lines.append(f"It wrote {ended.output.total:,} bytes; {ended.output.dropped:,} of them are left out below.")
    return "\n".join([*lines, "Output:", output] if output else [*lines, "It wrote nothing."])


def _killed(ended: Ended) -> str:
    how = BY_USER if _is_by_user(ended) else "cut off" if ended.ending is Ending.STOPPED else "killed"
    return f"{how} after {ended.seconds:.1f} s"


def _is_by_user(ended: Ended) -> bool:
    return ended.ending is Ending.STOPPED and ended.why == BY_USER


def _how_it_ended(ended: Ended) -> str:
    if ended.ending is Ending.OVER:
        missing = " Is there such a program?" if ended.code == _NOT_FOUND else ""
        return f"Exit code {ended.code} after {ended.seconds:.1f} s.{missing}"
    why = _why_killed(ended)
    return f"It was {_killed(ended)}{f': {why}' if why else '.'} What it had changed by then is changed."


def _why_killed(ended: Ended) -> str:
    most = files.in_words(settings.WAYMARK_WORKSPACE_BYTES)
    match ended.ending:
        case Ending.STOPPED if not _is_by_user(ended):
            return f"{ended.why}; it may be run again."
        case Ending.TIME:
            return "that is the longest a command may take. If it waited for input or a terminal: there is none."
        case Ending.MEMORY:
            return f"it took more than {files.in_words(settings.WAYMARK_COMMAND_MEMORY)} of memory."
        case Ending.PROCESSES:
            return f"it started more than {settings.WAYMARK_COMMAND_PROCESSES} processes."
        case Ending.FILES:
            return f"the workspace held more than {most} or {settings.WAYMARK_WORKSPACE_FILES:,} files."
        case Ending.OUTPUT:
            return "it wrote without end."
        case Ending.DISK:
            return "the disk of this server is nearly full."
    return ""


def _what_changed(changes: Sequence[Change]) -> list[str]:
    """State facts (mission A9): which files are new, changed and gone."""
    kinds: dict[str, list[str]] = {"New": [], "Changed": [], "Gone": []}
    for each in changes:
        kinds["New" if each.before is None else "Gone" if each.after is None else "Changed"].append(each.name)
    return [f"{kind}: {clip(', '.join(names), 500)}" for kind, names in kinds.items() if names]

"""What has changed in a workspace behind our back: by a command, or whoever else has the disk (missions A9 and D10)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from django.conf import settings
from django.db import transaction

from tools.changes import Change
from tools.file_changes import change
from tools.file_models import Workspace, WorkspaceFile, Writer
from tools.files import FileRefused, Hand, locked, named, remember, together, write_down
from tools.sandbox.beneath import Missing, OutOfReach
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Entry, Scan
from tools.sandbox.staging import Content


def settle(thread_id: UUID, hand: Hand, *, keep: bool) -> tuple[list[Change], Scan]:
    """Look up what has changed on the disk since it was looked at last, and whose doing that is from now on.

    Args:
        keep: what files hold, for an undo.

    Returns:
        What is different, and everything there is.

    Raises:
        FileRefused: somebody else holds the workspace for too long.
    """
    folder = Folder(thread_id)
    if keep:
        _keep(folder, WorkspaceFile.objects.filter(workspace=thread_id))
    with transaction.atomic():
        workspace = locked(thread_id)
        rows = {row.path: row for row in workspace.files.all()}
        scan = folder.scan(settings.WAYMARK_WORKSPACE_FILES * 2)  # there may be more than may be, for a moment
        marked = replace(hand, sources=together(workspace.sources, hand.sources))
        changes = [*_written(workspace, folder, scan, rows, marked, keep), *_gone(workspace, scan, rows)]
        remember(workspace, marked.sources, ())
    if keep:
        folder.kept.let_go()
    return [each for each in changes if each.before != each.after], scan


def remember_folders(thread_id: UUID, made: Iterable[str]) -> None:
    """Folders that a command has made: an undo takes them away with what is in them."""
    with transaction.atomic():
        remember(locked(thread_id), (), sorted(made))


def sources_of(thread_id: UUID, entries: Iterable[Entry]) -> list[str]:
    """Where text of strangers in these files came from (mission D10). A file that somebody unknown has changed may be
    made of everything that ever came in."""
    workspace = Workspace.objects.filter(pk=thread_id).first()
    if workspace is None or not workspace.sources:
        return []
    rows = {row.path: row for row in workspace.files.all()}
    found: list[str] = []
    for entry in entries:
        row = rows.get(entry.path)
        found += row.sources if row and row.stamp == entry.stamp else workspace.sources
    return list(dict.fromkeys(found))


def forget_sources(thread_id: UUID) -> None:
    """Take the marks off all files of a workspace."""
    with transaction.atomic():
        Workspace.objects.filter(pk=thread_id).update(sources=[])
        WorkspaceFile.objects.filter(workspace=thread_id).update(sources=[])


def is_agents_own(thread_id: UUID, path: str) -> bool:
    """Whether nothing is lost that a person has put there if the file is changed: there is none, or the agent has
    written what it holds. Of what is not known, people count as the authors."""
    try:
        entry = Folder(thread_id).entry(named(path))
    except Missing:
        return True
    except (FileRefused, OutOfReach):
        return False
    return _is_agents_own(entry, WorkspaceFile.objects.filter(workspace=thread_id, path=entry.path).first())


def is_all_agents_own(thread_id: UUID) -> bool:
    """`is_agents_own`, of everything there is. Of what cannot be looked into, people count as the authors as well."""
    scan = Folder(thread_id).scan(settings.WAYMARK_WORKSPACE_FILES + 1)
    rows = {row.path: row for row in WorkspaceFile.objects.filter(workspace=thread_id)}
    return (
        scan.whole and not scan.odd and all(_is_agents_own(each, rows.get(each.path)) for each in scan.files.values())
    )


def _is_agents_own(entry: Entry, row: WorkspaceFile | None) -> bool:
    return row is not None and row.stamp == entry.stamp and row.writer in (Writer.AGENT, Writer.COMMAND)


def _keep(folder: Folder, rows: Iterable[WorkspaceFile]) -> None:
    """Keep what files hold, before others have to wait for the lock."""
    known = {row.path: row for row in rows}
    for path, entry in folder.scan(settings.WAYMARK_WORKSPACE_FILES + 1).files.items():
        row = known.get(path)
        if row is None or row.stamp != entry.stamp or not folder.kept.renewed(row.sha256):
            with suppress(OutOfReach):
                folder.content(path.split("/"), keep=True)


def _written(
    workspace: Workspace, folder: Folder, scan: Scan, rows: Mapping[str, WorkspaceFile], hand: Hand, keep: bool
) -> Iterator[Change]:
    """Files that are not as we know them. Those that cannot be read are left as they are."""
    for path, entry in sorted(scan.files.items()):
        row = rows.get(path)
        if row and row.stamp == entry.stamp and (not keep or folder.kept.holds(row.sha256)):
            continue
        try:
            content = folder.content(path.split("/"), keep=keep)
        except OutOfReach:
            continue
        if content is not None and not (row and row.stamp == entry.stamp):
            write_down(workspace, entry, content, hand)
            yield change(workspace.pk, path, _known(row), content)


def _gone(workspace: Workspace, scan: Scan, rows: Mapping[str, WorkspaceFile]) -> Iterator[Change]:
    if not scan.whole:
        return
    gone = [row for path, row in rows.items() if path not in scan.files]
    workspace.files.filter(pk__in=[row.pk for row in gone]).delete()
    for row in gone:
        yield change(workspace.pk, row.path, _known(row), None)


def _known(row: WorkspaceFile | None) -> Content | None:
    return Content(row.sha256, row.size, row.mode) if row else None

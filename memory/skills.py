"""Skills: every write that a face may ask for, and what agents are told of them (mission E1)."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from memory.models import Skill, SkillFile, SkillOff, SkillVersion, Thread
from memory.room import ROW, make_sure_of_room, size
from memory.skill_files import MANIFEST, Folder, SkillRefused, manifest, opened, packed, read
from memory.text import clean
from memory.versions import drop_oldest

VERSIONS: Final = 10
"""Of one skill; each has all of its files."""


class SkillTaken(SkillRefused):
    """Its user has another one of that name, which it may replace."""

    def __init__(self, skill: Skill) -> None:
        super().__init__(f"You have a skill {skill.name!r} already, which says something else. It can be replaced.")
        self.skill = skill


def add_skill(user: User, upload: bytes, *, replace: bool = False) -> Skill:
    """Take in a zip of a skill, or a SKILL.md. It is off until its user has looked at it and switches it on.

    Args:
        replace: put it in the place of the user's skill of that name, if there is one. The same agents may use it then,
            and what that said is kept.

    Raises:
        SkillTaken: the user has one of that name, which says something else.
        SkillRefused: it cannot be read as one, or the user has the very same, or too many, or no room for it.
    """
    folder = read(upload)
    found = manifest(folder.text)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        mine = Skill.objects.for_user(user)
        there = mine.select_for_update().filter(name=found.name).first()
        if there and replace:
            _become(there, folder, is_on=False)
            return there
        if there and folder == _folder(there):
            raise SkillRefused(f"You have this very skill {found.name!r} already.")
        if there:
            raise SkillTaken(there)
        if mine.count() >= settings.WAYMARK_SKILLS:
            raise SkillRefused(f"At most {settings.WAYMARK_SKILLS} skills are kept. Delete one first.")
        make_sure_of_room(user.pk, _size(folder), SkillRefused)
        skill = Skill.objects.create(user=user, name=found.name, description=found.description, text=folder.text)
        _keep_files(skill, folder)
        return skill


def change_skill(skill: Skill, text: str) -> None:
    """Let its SKILL.md say something else. Its files stay, and so does whether it is on: its user wrote this. What it
    said is kept.

    Raises:
        SkillRefused: it is none, or the user has another one of that name.
    """
    with transaction.atomic():
        there = Skill.objects.select_for_update().get(pk=skill.pk)
        _become(there, Folder(clean(text), _folder(there).files), is_on=there.is_on)


def restore_skill(version: SkillVersion) -> None:
    """Let a skill be again what it was once, and on if it was. How it stands now is kept.

    Raises:
        SkillRefused: as `change_skill`.
    """
    with transaction.atomic():
        there = Skill.objects.select_for_update().get(pk=version.skill_id)
        _become(there, Folder(version.text, opened(bytes(version.files))), is_on=version.is_on)


def _become(skill: Skill, folder: Folder, *, is_on: bool) -> None:
    """Within a transaction that has locked it. One that is this already stays as it is."""
    found, before = manifest(folder.text), _folder(skill)
    if folder == before:
        return
    make_sure_of_room(skill.user_id, _size(folder), SkillRefused)
    SkillVersion.objects.create(
        skill=skill,
        text=before.text,
        files=packed(before.files.items()),
        is_on=skill.is_on,
        written_at=skill.updated_at,
    )
    drop_oldest(skill.versions.all(), VERSIONS)
    skill.name, skill.description, skill.text = found.name, found.description, folder.text
    skill.is_on, skill.updated_at = is_on, Now()
    try:
        with transaction.atomic():
            skill.save(update_fields=["name", "description", "text", "is_on", "updated_at"])
    except IntegrityError as taken:
        raise SkillRefused(f"You have a skill {found.name!r} already.") from taken
    if folder.files != before.files:
        skill.files.all().delete()
        _keep_files(skill, folder)


def _folder(skill: Skill) -> Folder:
    return Folder(skill.text, {file.path: bytes(file.content) for file in skill.files.all()})


def _size(folder: Folder) -> int:
    return size(folder.text) + sum(len(content) + ROW for content in folder.files.values())


def _keep_files(skill: Skill, folder: Folder) -> None:
    files = [SkillFile(skill=skill, path=path, content=content) for path, content in folder.files.items()]
    SkillFile.objects.bulk_create(files)


def switch_skill(skill: Skill, *, on: bool, read: datetime | None = None) -> bool:
    """Let agents use a skill, or not any more.

    Args:
        read: when what its user has read was written; False, and nothing done, if it says something else by now.
    """
    found = Skill.objects.filter(pk=skill.pk, **({"updated_at": read} if read else {}))
    return bool(found.update(is_on=on))


def keep_from(skill: Skill, threads: Collection[UUID]) -> None:
    """Have all agents of its user use a skill but those of these threads."""
    mine = Thread.objects.filter(user=skill.user_id, pk__in=threads)
    with transaction.atomic():
        SkillOff.objects.filter(skill=skill).delete()
        SkillOff.objects.bulk_create([SkillOff(skill=skill, thread=thread) for thread in mine])


def delete_skill(skill: Skill) -> None:
    skill.delete()


def exported(skill: Skill) -> bytes:
    """Its folder as a zip."""
    folder = _folder(skill)
    files = {MANIFEST: folder.text.encode(), **folder.files}
    return packed((f"{skill.name}/{path}", content) for path, content in files.items())


def usable(user_id: int, thread_id: UUID, name: str) -> Skill | None:
    """A skill that an agent may read now."""
    mine = Skill.objects.filter(user=user_id, name=name, is_on=True)
    return mine.exclude(off_for__thread=thread_id).first()


# For a thread that is called t: names and descriptions of the skills that its agent may use.
USABLE: Final = """
(SELECT coalesce(jsonb_agg(jsonb_build_array(k.name, k.description) ORDER BY k.name), '[]') FROM memory_skill k
  WHERE k.user_id = t.user_id AND k.is_on
    AND NOT EXISTS (SELECT FROM memory_skilloff o WHERE o.skill_id = k.id AND o.thread_id = t.id))
"""


def section(skills: Sequence[tuple[str, str]]) -> str:
    """Names and descriptions as a section of the system prompt; empty for none."""
    lines = "\n".join(f"<skill name={quoteattr(name)}>{escape(text)}</skill>" for name, text in skills)
    return f"\n<skills>\n{lines}\n</skills>\n" if skills else ""

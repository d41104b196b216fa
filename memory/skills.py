"""Skills: every write that a face may ask for, and what agents are told of them (mission E1)."""

from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID
from xml.sax.saxutils import escape, quoteattr

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from memory.models import Skill, SkillFile, SkillOff, Thread
from memory.skill_files import MANIFEST, Folder, SkillRefused, manifest, packed, read
from memory.text import clean


def add_skill(user: User, upload: bytes) -> Skill:
    """Take in a zip of a skill, or a SKILL.md. It is off until its user has looked at it and switches it on.

    Raises:
        SkillRefused: it cannot be read as one, or the user has one of that name, or too many.
    """
    folder = read(upload)
    found = manifest(folder.text)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        mine = Skill.objects.for_user(user)
        if mine.filter(name=found.name).exists():
            raise SkillRefused(f"You have a skill {found.name!r} already. Delete it first, or change it on its page.")
        if mine.count() >= settings.WAYMARK_SKILLS:
            raise SkillRefused(f"At most {settings.WAYMARK_SKILLS} skills are kept. Delete one first.")
        return _created(user, folder, found.name, found.description)


def _created(user: User, folder: Folder, name: str, description: str) -> Skill:
    skill = Skill.objects.create(user=user, name=name, description=description, text=folder.text)
    files = [SkillFile(skill=skill, path=path, content=content) for path, content in folder.files.items()]
    SkillFile.objects.bulk_create(files)
    return skill


def change_skill(skill: Skill, text: str) -> None:
    """Let its SKILL.md say something else. Its files stay, and so does whether it is on: its user wrote this.

    Raises:
        SkillRefused: as `add_skill`.
    """
    text = clean(text)
    found = manifest(text)
    skill.name, skill.description, skill.text, skill.updated_at = found.name, found.description, text, Now()
    try:
        with transaction.atomic():
            skill.save(update_fields=["name", "description", "text", "updated_at"])
    except IntegrityError as taken:
        raise SkillRefused(f"You have a skill {found.name!r} already.") from taken


def switch_skill(skill: Skill, *, on: bool) -> None:
    """Let agents use a skill, or not any more."""
    Skill.objects.filter(pk=skill.pk).update(is_on=on)


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
    files = {MANIFEST: skill.text.encode()} | {file.path: bytes(file.content) for file in skill.files.all()}
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

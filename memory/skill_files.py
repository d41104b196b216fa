"""Skills as they come and go: a SKILL.md, or a zip of the folder that it stands in (mission E1).

What others made is read as if they meant harm: nothing is unpacked to disk, sizes are counted while they are read
instead of believed, and links, encrypted entries and names that lead elsewhere refuse the whole.
"""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml
from django.conf import settings

from memory.files import seen
from memory.skill import Skill, SkillFile
from memory.text import UNSEEN, clean

MANIFEST: Final = "SKILL.md"
LONGEST_FRONT: Final = 16_000
"""Of the front matter, in characters."""
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FRONT: Final = re.compile(r"---[ \t]*\n(.*?)\n---[ \t]*(?:\n|$)(.*)", re.DOTALL)
_PACKING: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_LITTER: Final = re.compile(r"(?:^|/)(?:__MACOSX/|\.DS_Store$|Thumbs\.db$)")


class SkillRefused(Exception):
    """It is no skill, or may not be one of this server; the message is for people and models alike."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a SKILL.md says. body: what agents read, below the front matter."""

    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class Folder:
    """text: of its SKILL.md. files: those beside it, by path."""

    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)


class _Plain(yaml.SafeLoader):
    """YAML without references: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it refers to itself")
        return super().compose_node(parent, index)


def manifest(text: str) -> Manifest:
    """
    Args:
        text: of a SKILL.md.

    Raises:
        SkillRefused: it has no front matter, or a name or description that is none.
    """
    if len(text) > settings.WAYMARK_SKILL_LENGTH:
        raise SkillRefused(
            f"{MANIFEST} has {len(text):,} characters; at most {settings.WAYMARK_SKILL_LENGTH:,} are allowed."
        )
    match = _FRONT.fullmatch(text)
    if match is None or len(match[1]) > LONGEST_FRONT:
        raise SkillRefused(f"{MANIFEST} must begin with front matter: name and description between lines of ---.")
    said = _said(match[1])
    name, description = said.get("name"), said.get("description")
    if not isinstance(name, str) or len(name) > Skill.NAME_LENGTH or not _NAME.fullmatch(name):
        raise SkillRefused(
            f"The name must be of small letters, digits and single hyphens, {Skill.NAME_LENGTH} characters at most."
        )
    if not isinstance(description, str) or not 0 < len(description.strip()) <= Skill.DESCRIPTION_LENGTH:
        raise SkillRefused(f"The description must be a text of 1 to {Skill.DESCRIPTION_LENGTH:,} characters.")
    if UNSEEN.search(description) or clean(description) != description:
        raise SkillRefused("The description has characters that nobody sees.")
    return Manifest(name, " ".join(description.split()), match[2].strip("\n"))


def read(upload: bytes) -> Folder:
    """Read what was uploaded: a zip of one skill, or a SKILL.md.

    Raises:
        SkillRefused: it is neither, or has something in it that no skill needs.
    """
    if len(upload) > (most := settings.WAYMARK_SKILL_BYTES):
        raise SkillRefused(f"It has {len(upload):,} bytes; at most {most:,} are allowed.")
    if not upload.startswith(b"PK"):
        return Folder(_text(upload))
    try:
        with zipfile.ZipFile(io.BytesIO(upload)) as archive:
            return _folder(dict(_unpacked(archive)))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as broken:
        raise SkillRefused("This zip cannot be read.") from broken


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """A zip of files by their paths, for `read`, which looks at them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files:
            archive.writestr(path, content)
    return out.getvalue()


def opened(zipped: bytes) -> dict[str, bytes]:
    """The files in a zip that `packed` has made."""
    with zipfile.ZipFile(io.BytesIO(zipped)) as archive:
        return {path: archive.read(path) for path in archive.namelist()}


def _said(front: str) -> Mapping[object, object]:
    try:
        said = yaml.load(front, _Plain)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as broken:
        raise SkillRefused("The front matter is not YAML that can be read.") from broken
    if not isinstance(said, dict):
        raise SkillRefused("The front matter must be lines of names and values.")
    return said


def _unpacked(archive: zipfile.ZipFile) -> Iterable[tuple[str, bytes]]:
    left = settings.WAYMARK_SKILL_UNPACKED_BYTES
    entries = [entry for entry in archive.infolist() if not entry.is_dir() and not _LITTER.search(entry.filename)]
    if len(entries) > settings.WAYMARK_SKILL_FILES:
        raise SkillRefused(f"It has {len(entries)} files; at most {settings.WAYMARK_SKILL_FILES} are allowed.")
    known: set[str] = set()
    for entry in entries:
        path = _path(entry)
        if path.casefold() in known:
            raise SkillRefused(f"{path!r} is in it twice.")
        known.add(path.casefold())
        with archive.open(entry) as file:
            content = file.read(left + 1)
        left -= len(content)
        if left < 0:
            raise SkillRefused(f"Unpacked it has more than {settings.WAYMARK_SKILL_UNPACKED_BYTES:,} bytes.")
        yield path, content


def _path(entry: zipfile.ZipInfo) -> str:
    kind, is_secret = stat.S_IFMT(entry.external_attr >> 16), bool(entry.flag_bits & 1)
    if kind not in (0, stat.S_IFREG) or is_secret or entry.compress_type not in _PACKING:
        raise SkillRefused(f"{entry.filename!r} is no plain file.")
    path = clean(entry.filename)
    parts = path.split("/")
    if "\\" in path or ":" in path or seen(path) != path or {"", ".", ".."} & set(parts):
        raise SkillRefused(f"{path!r} is no name of a file in a folder.")
    if len(path) > SkillFile.PATH_LENGTH:
        raise SkillRefused(f"{path!r} is too long a name.")
    return path


def _folder(unpacked: Mapping[str, bytes]) -> Folder:
    """The one skill in it, at the top or in the one folder there."""
    roots = [path.removesuffix(MANIFEST) for path in unpacked if path.rpartition("/")[2] == MANIFEST]
    if len(roots) != 1:
        raise SkillRefused(f"It must have one {MANIFEST}, of one skill; there are {len(roots)}.")
    root = roots[0]
    if outside := next((path for path in unpacked if not path.startswith(root)), None):
        raise SkillRefused(f"{outside!r} stands outside of the folder of the skill.")
    files = {path.removeprefix(root): content for path, content in unpacked.items()}
    return Folder(_text(files.pop(MANIFEST)), files)


def _text(content: bytes) -> str:
    try:
        return clean(content.decode("utf-8-sig")).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SkillRefused(f"{MANIFEST} is no text in UTF-8.") from error

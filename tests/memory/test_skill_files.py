"""Skills that others made are read as if they meant harm (mission E1, threats T14 and T16)."""

import io
import stat
import zipfile
from collections.abc import Mapping

import pytest
from pytest_django import Settings

from memory.skill_files import Folder, SkillRefused, manifest, packed, read

TEXT = "---\nname: plan-a-week\ndescription: How to plan a week.\nlicense: MIT\n---\n\nLook at the last one.\n"


def zipped(files: Mapping[str, str | bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def test_a_manifest_says_name_description_and_what_to_do() -> None:
    found = manifest(TEXT)
    assert (found.name, found.description, found.body) == (
        "plan-a-week",
        "How to plan a week.",
        "Look at the last one.",
    )
    folded = manifest("---\nname: a\ndescription: >\n  One\n  two.\nmetadata:\n  by: me\n---\nx\n---\ny")
    assert (folded.description, folded.body) == ("One two.", "x\n---\ny")
    assert manifest("---\nname: a\ndescription: b\n---").body == ""


BAD = {
    "no front matter": "# Plan",
    "not closed": "---\nname: a\ndescription: b\n",
    "no name": "---\ndescription: b\n---",
    "capitals": "---\nname: Plan\ndescription: b\n---",
    "hyphen at the end": "---\nname: a-\ndescription: b\n---",
    "two hyphens": "---\nname: a--b\ndescription: b\n---",
    "a path": "---\nname: ../a\ndescription: b\n---",
    "a long name": f"---\nname: {'a' * 65}\ndescription: b\n---",
    "a number": "---\nname: 7\ndescription: b\n---",
    "no description": "---\nname: a\n---",
    "a blank description": "---\nname: a\ndescription: ' '\n---",
    "a long description": f"---\nname: a\ndescription: {'b' * 1025}\n---",
    "a list": "---\n- name\n---",
    "not YAML": "---\nname: a: b: [\n---",
    "code": "---\nname: a\ndescription: !!python/object/apply:os.system [id]\n---",
    "laughs": "---\nname: a\ndescription: b\nx: &x [1, 2]\ny: [*x, *x]\n---",
    "a huge number": f"---\nname: a\ndescription: b\nx: {'9' * 9_000}\n---",
    "deep": f"---\nname: a\ndescription: b\nx: {'[' * 7_000}\n---",
    "long front matter": f"---\nname: a\ndescription: b\nx: {'y' * 16_001}\n---",
    "hidden": "---\nname: a\ndescription: b\u202ec\n---",
    "half of a pair": '---\nname: a\ndescription: "b\\ud800"\n---',
    "too long": f"{TEXT}{'x' * 18_000}",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(SkillRefused):
        manifest(text)


def test_a_folder_is_read_and_packed_again() -> None:
    assert read(TEXT.replace("\n", "\r\n").encode()) == Folder(TEXT)
    assert read(b"\xef\xbb\xbf" + TEXT.encode()) == Folder(TEXT)
    files: dict[str, str | bytes] = {"SKILL.md": TEXT, "docs/more.md": "More", "x.png": b"\x89"}
    wanted = Folder(TEXT, {"docs/more.md": b"More", "x.png": b"\x89"})
    assert read(zipped(files)) == wanted
    litter: dict[str, str | bytes] = {"__MACOSX/s/._SKILL.md": "x", "s/.DS_Store": "x", "s/": ""}
    assert read(zipped({**{f"s/{name}": content for name, content in files.items()}, **litter})) == wanted
    assert read(packed([("s/SKILL.md", TEXT.encode()), ("s/a.md", b"More")])) == Folder(TEXT, {"a.md": b"More"})


@pytest.mark.parametrize(
    "path",
    [
        *("../up.md", "a/../../up.md", "/etc/passwd", "C:/x.md", "..\\up.md", "a//b", "./a", "a/.", "x\u202ey", "x\n"),
        *("skill.MD", "other/SKILL.md", "a" * 201),
    ],
)
def test_a_name_that_leads_elsewhere_refuses_the_whole(path: str) -> None:
    with pytest.raises(SkillRefused):
        read(zipped({"SKILL.md": TEXT, path: TEXT}))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(kind: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("SKILL.md", TEXT)
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (kind | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(SkillRefused, match="no plain file"):
        read(out.getvalue())


def test_bombs_are_refused_by_what_they_are_and_not_by_what_they_say(settings: Settings) -> None:
    bomb = zipped({"SKILL.md": TEXT, "a.txt": b"x" * 1_500_000, "b.txt": b"x" * 600_000})
    assert len(bomb) < 10_000
    with pytest.raises(SkillRefused, match="Unpacked it has more than"):
        read(bomb)
    with pytest.raises(SkillRefused, match="no plain file"):
        read(zipped({"SKILL.md": TEXT}, zipfile.ZIP_LZMA))
    with pytest.raises(SkillRefused, match="101 files"):
        read(zipped({"SKILL.md": TEXT, **{f"{n}.md": "x" for n in range(100)}}))
    settings.WAYMARK_SKILL_BYTES = 100
    with pytest.raises(SkillRefused, match="at most 100"):
        read(b"x" * 101)


def test_what_is_no_zip_and_what_is_broken_is_refused() -> None:
    whole = zipped({"SKILL.md": TEXT}, zipfile.ZIP_STORED)
    for broken in (b"PK\x03\x04", whole[:-30], whole.replace(b"Look", b"Lool"), b"PK" + whole[2:40] + whole[41:]):
        with pytest.raises(SkillRefused):
            read(broken)
    with pytest.raises(SkillRefused, match="there are 0"):
        read(zipped({"README.md": "x"}))
    with pytest.raises(SkillRefused, match="stands outside"):
        read(zipped({"s/SKILL.md": TEXT, "other.md": "x"}))
    with pytest.raises(SkillRefused, match="UTF-8"):
        read(b"\xff\xfe")

"""The scripts of the pages: one file, from known sources, within a strict content security policy."""

import re
import tomllib
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from config.management.commands import bundle

TEMPLATES = sorted((Path(settings.BASE_DIR) / "templates").rglob("*.html"))
STYLES = sorted((Path(settings.BASE_DIR) / "static").glob("*.css"))


def test_the_committed_bundle_is_fresh() -> None:
    call_command("bundle", check=True)


def test_a_changed_script_makes_the_bundle_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "TARGET", tmp_path / "app.bundle.js")
    with pytest.raises(CommandError, match="stale"):
        call_command("bundle", check=True)
    call_command("bundle")
    call_command("bundle", check=True)
    bundle.TARGET.write_text(bundle.TARGET.read_text() + "changed")
    with pytest.raises(CommandError, match="stale"):
        call_command("bundle", check=True)


def test_a_vendored_file_that_differs_from_its_sum_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor = tmp_path / "vendor"
    vendor.mkdir()
    (vendor / "x.js").write_text("alert(1)")
    (vendor / "vendor.toml").write_text('[[file]]\nfile = "x.js"\nsha256 = "0000"\n')
    monkeypatch.setattr(bundle, "STATIC", tmp_path)
    with pytest.raises(CommandError, match=r"x\.js"):
        call_command("bundle", check=True)


def test_each_vendored_file_keeps_its_licence() -> None:
    folder = bundle.STATIC / "vendor"
    for entry in tomllib.loads((folder / "vendor.toml").read_text())["file"]:
        assert (folder / entry["licence_file"]).exists()
        assert entry["version"]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.relative_to(settings.BASE_DIR).as_posix())
def test_no_template_needs_inline_script_or_style(template: Path) -> None:
    text = re.sub(r"{#.*?#}", "", template.read_text())
    assert not re.search(r"<script(?![^>]*\ssrc=)", text)
    assert not re.search(r"\sstyle=", text)
    assert not re.search(r"\son[a-z]+=", text)
    assert not re.search(r"hx-on|hx-vals=.js:|hx-headers=.js:", text)
    assert not re.search(r'hx-trigger="[^"]*\[', text)


@pytest.mark.parametrize("sheet", STYLES, ids=lambda path: path.name)
def test_styles_take_nothing_from_elsewhere(sheet: Path) -> None:
    for address in re.findall(r"url\(\"?([^\")]+)", sheet.read_text()):
        assert (sheet.parent / address).exists(), address


def test_scripts_need_no_eval() -> None:
    for script in (bundle.STATIC / "js").glob("*.js"):
        assert not re.search(r"\beval\(|new Function|innerHTML|document\.write", script.read_text())

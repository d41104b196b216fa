"""The shape of the house: what import-linter cannot see."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.db.models import ForeignKey

ROOT = Path(__file__).resolve().parent.parent
ORDER = ["goals", "agents", "tools", "memory"]
TOP_LEVEL = {
    *("manage.py", "pyproject.toml", "config", "agents", "goals", "tools", "memory", "templates", "static", "tests"),
    *("Dockerfile", "README.md", "CHANGELOG.md", "LICENSE", "bin", "bench", "deploy", "docs"),
    *("requirements.txt", "requirements-dev.txt", "requirements-sandbox.txt"),
}
LONGEST_FILE = 300
LONGEST_FUNCTION = 60
CITED = re.compile(r"\bmission ([A-Z]\d+)|\b([A-Z]{3}-\d\d)\b|\b(I\d+)\b")


def sources() -> Iterator[Path]:
    for package in ("config", *ORDER):
        yield from (path for path in (ROOT / package).rglob("*.py") if "migrations" not in path.parts)


def test_foreign_keys_point_down_the_sentence() -> None:
    for app in ORDER:
        for model in apps.get_app_config(app).get_models():
            for field in model._meta.get_fields():
                if isinstance(field, ForeignKey) and field.related_model._meta.app_label in ORDER:
                    target = field.related_model._meta.app_label
                    assert ORDER.index(target) >= ORDER.index(app), f"{model.__name__}.{field.name} points up"


def test_files_and_functions_stay_small() -> None:
    for path in sources():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= LONGEST_FILE, f"{path} is long: would two rooms with names of their own be better?"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= LONGEST_FUNCTION, f"{path}:{node.lineno} {node.name} has {length} lines"


def test_the_top_level_holds_only_what_was_agreed() -> None:
    here = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")} - {"__pycache__"}
    assert here <= TOP_LEVEL, f"unexpected: {here - TOP_LEVEL}"


def test_every_rule_that_is_cited_is_listed() -> None:
    listed = {*re.findall(r"^\| (\S+) \|", f"{_read('docs/rules.md')}{_read('docs/reliability.md')}", re.MULTILINE)}
    for path in [*sources(), *(ROOT / "tests").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        names = re.findall(r"def test_([a-z]{3})_(\d\d)_", text)
        cited = {"".join(groups) for groups in CITED.findall(text)} | {f"{case.upper()}-{no}" for case, no in names}
        assert cited <= listed, f"{path} cites {cited - listed}, which docs/rules.md does not list"


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")

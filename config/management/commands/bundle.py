"""`manage.py bundle`: the scripts of the pages as one file.

htmx starts itself as soon as it is parsed; an extension in a second deferred file may come too late
(bigskysoftware/htmx#3693). One file has one order.
"""

import hashlib
import tomllib
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

STATIC = Path(settings.BASE_DIR) / "static"
TARGET = STATIC / "app.bundle.js"


class Command(BaseCommand):
    help = "Join static/vendor and static/js into static/app.bundle.js."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing, fail when the bundle is stale")

    def handle(self, *args: Any, **options: Any) -> None:
        bundle = build()
        if not options["check"]:
            TARGET.write_text(bundle, encoding="utf-8")
            self.stdout.write(f"{TARGET.name}: {len(bundle)} characters")
        elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != bundle:
            raise CommandError("static/app.bundle.js is stale: run `manage.py bundle` and commit it")


def build() -> str:
    """Return vendored scripts in the order of vendor.toml, then our own by name. CommandError on a wrong checksum."""
    ours = [path.read_text(encoding="utf-8") for path in sorted((STATIC / "js").glob("*.js"))]
    return "\n;\n".join([*_vendored(), *ours])


def _vendored() -> list[str]:
    folder = STATIC / "vendor"
    manifest = tomllib.loads((folder / "vendor.toml").read_text(encoding="utf-8"))
    scripts = []
    for entry in manifest["file"]:
        raw = (folder / entry["file"]).read_bytes()
        if hashlib.sha256(raw).hexdigest() != entry["sha256"]:
            raise CommandError(f"{entry['file']} is not what vendor.toml says")
        scripts.append(raw.decode().rstrip())
    return scripts

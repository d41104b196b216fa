"""`manage.py worker`: run agents. Start as many as you like, on as many machines as you like."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents.engine.worker import start
from memory.schema import SchemaMismatch, require_fit


class Command(BaseCommand):
    help = "Run agents: takes runs from the queue and works on many of them at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--concurrency", type=int, default=100, help="how many runs at once (default 100)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["skip_checks"]:  # bin/up has looked already
            _require_fit()
        start(options["concurrency"])


def _require_fit() -> None:
    try:
        require_fit()
    except SchemaMismatch as mismatch:
        raise CommandError(f"The worker does not start, so that runs wait. {mismatch}") from mismatch

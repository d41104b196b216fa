"""`manage.py health`: whether the vital parts are there, and every check of the health monitor now."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents import vitals
from agents.engine.health import CHECKS, examine


class Command(BaseCommand):
    help = "Print how the vital parts are and what is out of order; the exit code is 1 when something stays so."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--fix", action="store_true", help="put right what was found")

    def handle(self, *args: Any, fix: bool, **options: Any) -> None:
        in_order = bool(vitals.database_trouble()) or self._examine(fix=fix)
        parts = vitals.parts()
        for part in parts:
            self.stdout.write(f"{part.name}: {part.text}" + ("" if part.well else " (not well)"))
        if ill := [part.name for part in parts if not part.well]:
            raise CommandError("Not well: " + ", ".join(ill))
        if not in_order:
            raise CommandError("Something is out of order." + ("" if fix else " `--fix` puts it right."))

    def _examine(self, *, fix: bool) -> bool:
        titles = {check.name: check.title for check in CHECKS}
        reports = examine(fix=fix, by_hand=True)
        for report in reports:
            outcome = report.error or f"{report.found} found" + (f", {report.fixed} fixed" if report.found else "")
            self.stdout.write(f"{titles[report.name]}: {outcome}")
            for example in report.examples:
                self.stdout.write(f"  {example}")
        return all(report.is_well for report in reports)

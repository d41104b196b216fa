"""`manage.py health`: make every check of the health monitor now."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents.engine.health import CHECKS, examine


class Command(BaseCommand):
    help = "Print what is out of order; the exit code is 1 when something stays so."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--fix", action="store_true", help="put right what was found")

    def handle(self, *args: Any, fix: bool, **options: Any) -> None:
        titles = {check.name: check.title for check in CHECKS}
        reports = examine(fix=fix, by_hand=True)
        for report in reports:
            outcome = report.error or f"{report.found} found" + (f", {report.fixed} fixed" if report.found else "")
            self.stdout.write(f"{titles[report.name]}: {outcome}")
            for example in report.examples:
                self.stdout.write(f"  {example}")
        if not all(report.is_well for report in reports):
            raise CommandError("Something is out of order." + ("" if fix else " `--fix` puts it right."))

"""`manage.py worker`: run agents. Start as many as you like, on as many machines as you like."""

import gc
from argparse import ArgumentParser
from typing import Any

import django_rq
from django.core.management.base import BaseCommand, CommandError
from rq import Queue

from agents.engine.worker import ThreadWorker
from memory.schema import SchemaMismatch, require_fit


class Command(BaseCommand):
    help = "Run agents: takes runs from the queue and works on many of them at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--concurrency", type=int, default=100, help="how many runs at once (default 100)")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["skip_checks"]:  # bin/up has looked already
            _require_fit()
        connection = django_rq.get_connection("default")
        worker = ThreadWorker(
            [Queue("default", connection=connection)], connection=connection, concurrency=options["concurrency"]
        )
        # What was loaded so far lives as long as the process: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        worker.work()


def _require_fit() -> None:
    try:
        require_fit()
    except SchemaMismatch as mismatch:
        raise CommandError(f"The worker does not start, so that runs wait. {mismatch}") from mismatch

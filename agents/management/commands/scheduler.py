"""`manage.py scheduler`: the clock of the system. Several may run; only one ticks."""

import signal
import threading
from typing import Any

import structlog
from django.core.management.base import BaseCommand

from agents.engine.clock import tick

log = structlog.get_logger(__name__)

TICK_SECONDS = 60


class Command(BaseCommand):
    help = "Ring once a minute for whatever is due."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        log.info("scheduler started")
        while not stop.is_set():
            tick()
            stop.wait(TICK_SECONDS)
        log.info("scheduler stopped")

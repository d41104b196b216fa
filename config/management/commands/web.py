"""`manage.py web`: the web process alone, for places that run the parts apart."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.children import serve_web
from config.embedded.errors import StartError
from config.startup import listen


class Command(BaseCommand):
    help = "Serve pages and API until SIGTERM, with the same limits to what strangers may send as bin/up."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            listener = listen(options["host"], options["port"])
        except StartError as error:
            raise CommandError(str(error)) from error
        serve_web(listener.fileno())

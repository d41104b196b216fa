"""`manage.py owner`: make sure that there is somebody who may do everything."""

import os
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from config.owner import ensure_owner, how_to_sign_in


class Command(BaseCommand):
    help = (
        "Make the owner's account from WAYMARK_OWNER_EMAIL and WAYMARK_OWNER_PASSWORD when nobody has an account yet; "
        "without them, print a link that makes it once. Running it again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        address = os.environ.get("WAYMARK_URL") or "http://127.0.0.1:8000"
        parser.add_argument("--url", default=address, help="the address people use (WAYMARK_URL, else %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            owner = ensure_owner(os.environ)
        except ValidationError as error:
            raise CommandError("WAYMARK_OWNER_PASSWORD: " + " ".join(error.messages)) from error
        self.stdout.write(how_to_sign_in(owner, options["url"]))

"""manage.py token EMAIL: a token for the API, shown once."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents import tokens


class Command(BaseCommand):
    help = "Print a new API token of a user. It is shown only this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="command line", help="the device's name in the list of devices")

    def handle(self, *args: Any, email: str, name: str, **options: Any) -> None:
        self.stdout.write(tokens.issue(person(email), name))


def person(email: str) -> User:
    """
    Raises:
        CommandError: no active user has this address, or several have.
    """
    try:
        return User.objects.get(email__iexact=email, is_active=True)
    except User.DoesNotExist as problem:
        raise CommandError(f"There is no active user with the address {email}.") from problem
    except User.MultipleObjectsReturned as problem:
        raise CommandError(f"Several users have the address {email}.") from problem

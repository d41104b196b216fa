"""manage.py password EMAIL: a new password for somebody who forgot theirs."""

from getpass import getpass
from typing import Any

from allauth.account.adapter import get_adapter
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.management.commands.token import person


class Command(BaseCommand):
    help = "Ask for a new password of a user and set it. All browsers and devices of the user are signed out."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def handle(self, *args: Any, email: str, **options: Any) -> None:
        user = person(email)
        password = self._asked(f"New password for {user.email}: ")
        try:
            validate_password(password, user)
        except ValidationError as refused:
            raise CommandError(" ".join(refused.messages)) from refused
        if self._asked("The same once more: ") != password:
            raise CommandError("The two are not the same; nothing was changed.")
        get_adapter().set_password(user, password)
        self.stdout.write(f"{user.email} signs in with the new password from now on.")

    def _asked(self, prompt: str) -> str:
        try:
            return getpass(prompt)
        except EOFError as ended:
            raise CommandError("Nothing was typed; nothing was changed.") from ended

"""manage.py chat EMAIL [--goal TITLE]: talk with an agent in the terminal, or send it what comes through a pipe."""

import contextlib
import sys
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.management.commands.token import person
from agents.refusals import Refused
from agents.services import assistant_of
from agents.stopping import stop_run
from agents.terminal import Conversation, Screen
from agents.terminal_text import harmless
from goals.models import Goal


class Command(BaseCommand):
    help = (
        "Talk with your assistant, or with the agent of a goal. Ctrl-C stops the run, once more leaves. "
        "What comes through a pipe or from a file is one message."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument(
            "--goal", help="title of a goal, or how it begins, or its id; without it you talk with the assistant"
        )

    def handle(self, *args: Any, email: str, goal: str | None, **options: Any) -> None:
        user = person(email)
        agent = assistant_of(user) if goal is None else _goal(user, goal)
        conversation = Conversation(agent.thread)
        if not sys.stdin.isatty():
            self._send(conversation, sys.stdin.read())
            return
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 (input() then edits its line, and knows those before)
        self.stdout.write(f"{harmless(agent.name())}. Ctrl-C stops a run, an empty line or Ctrl-D leaves.")
        self._talk(conversation)

    def _send(self, conversation: Conversation, text: str) -> None:
        try:
            self._answer(conversation, text.strip())
        except Refused as refusal:
            raise CommandError(refusal.message) from refusal
        except KeyboardInterrupt:
            self.stdout.write("")

    def _talk(self, conversation: Conversation) -> None:
        while text := self._asked():
            try:
                self._answer(conversation, text)
            except Refused as refusal:
                self.stderr.write(refusal.message)
            except KeyboardInterrupt:
                self.stdout.write("")
                return

    def _asked(self) -> str:
        try:
            return input("> ").strip()
        except (EOFError, KeyboardInterrupt):
            self.stdout.write("")
            return ""

    def _answer(self, conversation: Conversation, text: str) -> None:
        """Show a run to its end. The first Ctrl-C stops it, the second is the caller's."""
        run = conversation.say(text)
        screen = Screen(self.stdout)
        stopped = False
        events = conversation.follow(run)
        while True:
            try:
                for event in events:
                    screen.show(event)
                return
            except KeyboardInterrupt:
                if stopped:
                    raise
                stopped = True
                stop_run(run)
                events = conversation.follow(run)


def _goal(user: User, said: str) -> Goal:
    """
    Raises:
        CommandError: no goal of the user is called so, or several are.
    """
    mine = Goal.objects.for_user(user).select_related("thread")
    try:
        found = mine.filter(pk=UUID(said))
    except ValueError:
        found = mine.called(said)
    if len(found) > 1:
        listed = "; ".join(f"{harmless(each.title)} ({each.pk})" for each in found)
        raise CommandError(f"Several goals are called so: {listed}")
    if not found:
        raise CommandError(f"{user.email} has no goal {said}.")
    return found[0]

"""manage.py chat EMAIL [--goal ID]: talk with an agent in the terminal."""

from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.management.commands.token import person
from agents.refusals import Refused
from agents.services import assistant_of
from agents.stopping import stop_run
from agents.terminal import Conversation, Screen
from goals.models import Goal


class Command(BaseCommand):
    help = "Talk with your assistant, or with the agent of a goal. Ctrl-C stops the run, once more leaves."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--goal", type=UUID, help="id of a goal; without it you talk with the assistant")

    def handle(self, *args: Any, email: str, goal: UUID | None, **options: Any) -> None:
        user = person(email)
        if goal is None:
            agent: Goal | Any = assistant_of(user)
        else:
            agent = Goal.objects.for_user(user).select_related("thread").filter(pk=goal).first()
            if agent is None:
                raise CommandError(f"{email} has no goal {goal}.")
        self.stdout.write(f"{agent.name()}. Ctrl-C stops a run, an empty line or Ctrl-D leaves.")
        self._talk(Conversation(agent.thread))

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

"""Every write to goals that a face may ask for."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents.connecting import must_have_tools
from agents.engine.waits import end_waits_for_budgets
from agents.models import ModelConnection
from agents.refusals import Refused
from agents.services import open_thread
from agents.stopping import close_thread, delete_thread
from goals.feeds import begin_daily
from goals.models import Blaze, Goal
from goals.schedules import begin_to_beat
from memory.text import clean

DESCRIPTION_LENGTH = 10_000


def create_goal(user: User, title: str, description: str = "") -> Goal:
    """Create a goal and its thread; its blaze is the one the user's goals wear least.

    Raises:
        Refused: blank or too long, or one too many.
    """
    title, description = _checked(title, description)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        most = settings.WAYMARK_GOALS
        if most and Goal.objects.for_user(user).count() >= most:
            raise Refused("too_many", f"You have {most} goals, with those that you have archived. Delete one first.")
        thread = open_thread(user, Goal.kind())
        goal = Goal.objects.create(
            user=user, thread=thread, title=title, description=description, blaze=_least_worn(user)
        )
        begin_to_beat(thread)
        begin_daily(user)
        return goal


def update_goal(goal: Goal, *, title: str | None = None, description: str | None = None) -> Goal:
    """
    Raises:
        Refused: blank or too long.
    """
    goal.title, goal.description = _checked(
        goal.title if title is None else title,
        goal.description if description is None else description,
    )
    goal.save(update_fields=["title", "description"])
    return goal


def archive_goal(goal: Goal) -> None:
    """Put a goal away; a live run of it is stopped."""
    close_thread(goal.thread)
    goal.archived_at = timezone.now()
    goal.save(update_fields=["archived_at"])


def reopen_goal(goal: Goal) -> None:
    goal.archived_at = None
    goal.save(update_fields=["archived_at"])


def delete_goal(goal: Goal) -> None:
    """Delete a goal with everything that hangs on it: messages, history, runs, actions, notes, tasks."""
    delete_thread(goal.thread)


def choose_model(goal: Goal, connection: ModelConnection | None) -> None:
    """Let one goal think with a model of its own; None goes back to the user's default.

    Raises:
        Refused: the model lacks tools.
    """
    if connection is not None:
        must_have_tools(connection)
    goal.model_connection = connection
    goal.save(update_fields=["model_connection"])
    end_waits_for_budgets(goal.user)


def _checked(title: str, description: str) -> tuple[str, str]:
    title, description = " ".join(clean(title).split()), clean(description).strip()
    if not title:
        raise Refused("blank", "A goal needs a title.")
    if len(title) > Goal.TITLE_LENGTH:
        raise Refused("too_long", f"The title may have {Goal.TITLE_LENGTH} characters at most.")
    if len(description) > DESCRIPTION_LENGTH:
        raise Refused("too_long", f"The description may have {DESCRIPTION_LENGTH:,} characters at most.")
    return title, description


def _least_worn(user: User) -> str:
    worn = list(Goal.objects.for_user(user).values_list("blaze", flat=True))
    return min(Blaze.values, key=worn.count)

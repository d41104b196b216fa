"""What the agent keeps in mind of its person and its work (missions D2 and E1)."""

from django.db import transaction
from pydantic import Field

from memory.learnings import LearningRefused, Origin, end, learn, locked_learning, numbered
from memory.models import Author, Learning
from memory.text import clip
from tools.base import Arguments, Outcome, ToolContext, ToolError, Topic, Wording
from tools.changes import UndoRecord
from tools.learnings import image, record
from tools.rows import Writes, thread_of


class Lesson(Arguments):
    text: str | None = Field(
        None,
        description="One sentence that will still matter in weeks. Leave it out to take back what holds no more.",
    )
    replaces: int | None = Field(
        None, description="The number of the learning that it contradicts or makes better, or that holds no more."
    )
    both_hold: bool = Field(False, description="It is much like another one, and both are true.")


class ManageLearning(Writes[Lesson]):
    name = "manage_learning"
    topic = Topic.NOTES
    description = (
        "Keep in mind what you have learned of the user or of the work and will need again: a preference, a fact, what "
        "went wrong and why. What contradicts it later takes its place."
    )
    wording = Wording("bookmark", "Learn", "Learning", "Learned", "Could not learn")
    contained = True
    is_work = False
    Arguments = Lesson

    def subject(self, arguments: Lesson) -> str:
        return clip(arguments.text or "", 80)

    def is_contained(self, arguments: Lesson, context: ToolContext) -> bool:
        """What a person has said is not changed in a stranger's name."""
        found = self._meant(arguments, context)
        return found is None or found.author == Author.AGENT

    def run(self, arguments: Lesson, context: ToolContext) -> Outcome:
        if not arguments.text and arguments.replaces is None:
            raise ToolError("Give a text, or the number of what holds no more.")
        with transaction.atomic():
            old = self._meant(arguments, context)
            if arguments.replaces is not None:
                old = locked_learning(context.user_id, old.pk) if old else None
                if old is None:
                    raise ToolError(f"There is no learning {arguments.replaces}; <learnings> lists those that hold.")
            before = image(old) if old else None
            if not arguments.text:
                assert old is not None
                end(old)
                return self._done("Taken back.", old, record(None, old, before))
            origin = Origin(context.run_id, context.action_id, context.sources)
            try:
                learned = learn(
                    thread_of(context), arguments.text, origin, replacing=old, both_hold=arguments.both_hold
                )
            except LearningRefused as refused:
                raise ToolError(str(refused)) from refused
            return self._done(f"Kept as number {learned.number}.", learned, record(learned, old, before))

    def _meant(self, arguments: Lesson, context: ToolContext) -> Learning | None:
        return numbered(context.thread_id, arguments.replaces) if arguments.replaces is not None else None

    def _done(self, observation: str, about: Learning, undo: UndoRecord) -> Outcome:
        return Outcome(observation, clip(about.text, 80), undo)

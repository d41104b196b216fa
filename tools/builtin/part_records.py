"""Assessments of how things stand with the person, and proposals to them (mission D11)."""

from functools import partial
from uuid import UUID

from pydantic import Field

from memory.marks import merged
from memory.text import clip
from tools.base import Arguments, Outcome, ToolContext, ToolError, Wording
from tools.changes import UndoRecord
from tools.part_models import Assessment, Proposal
from tools.part_restoring import changed, image, recorded
from tools.parts import change_proposal, create_assessment, create_proposal, locked
from tools.quotes import read
from tools.reflecting import Evidence, Keeping, Reflecting, expected, refusing
from tools.rows import thread_of

SHOWN = 20
NO_PROPOSAL = "There is no proposal with this id in this conversation; list_proposals gives the ids."


class NewAssessment(Arguments):
    text: str = Field(description="How things stand with the user now, in a few sentences.")
    evidence: Evidence


class CreateAssessment(Keeping[NewAssessment]):
    name = "create_assessment"
    description = "Keep a short, dated text about how things stand with the user, with their own words as evidence."
    wording = Wording(
        "notebook-pen",
        "Note how things stand",
        "Noting how things stand",
        "Noted how things stand",
        "Could not note that",
    )
    Arguments = NewAssessment

    def subject(self, arguments: NewAssessment) -> str:
        return clip(arguments.text, 80)

    def run(self, arguments: NewAssessment, context: ToolContext) -> Outcome:
        with refusing():
            kept = create_assessment(thread_of(context), arguments.text, arguments.evidence, context.sources)
        return Outcome(f"Kept (id {kept.pk}).", clip(kept.text, 80), recorded(kept, None, image(kept)))


class NothingAsked(Arguments):
    pass


class ListAssessments(Reflecting[NothingAsked]):
    name = "list_assessments"
    description = f"Read the last {SHOWN} assessments of how things stood with the user, the newest first."
    wording = Wording(
        "notebook-pen",
        "Look at how things stood",
        "Looking at how things stood",
        "Looked at how things stood",
        "Could not look",
    )
    Arguments = NothingAsked

    def run(self, arguments: NothingAsked, context: ToolContext) -> Outcome:
        mine = Assessment.objects.filter(user=context.user_id, thread=context.thread_id)
        found = list(mine.order_by("-created_at", "-id")[:SHOWN])
        sources = merged(*(kept.sources for kept in found))
        return Outcome("\n\n".join(map(_told, found)) or "There is none.", f"{len(found)} found", sources=sources)


class NewProposal(Arguments):
    text: str = Field(description="What you suggest to the user, as they are to read it.")


class CreateProposal(Keeping[NewProposal]):
    name = "create_proposal"
    description = (
        "Keep a suggestion to the user, such as an exercise or an experiment. They accept or decline it on their page."
    )
    wording = Wording("message-circle", "Propose", "Proposing", "Proposed", "Could not propose")
    Arguments = NewProposal

    def subject(self, arguments: NewProposal) -> str:
        return clip(arguments.text, 80)

    def run(self, arguments: NewProposal, context: ToolContext) -> Outcome:
        with refusing():
            kept = create_proposal(thread_of(context), arguments.text, context.sources)
        done = f"Kept (id {kept.pk}). The user has not decided about it yet."
        return Outcome(done, clip(kept.text, 80), recorded(kept, None, image(kept)))


class ProposalEdit(Arguments):
    id: UUID = Field(description="Of the proposal, as list_proposals gives it.")
    text: str | None = Field(None, description="Other words for it, while it is open; leave it out to keep them.")
    done: bool = Field(False, description="That what the user has accepted is done.")


class UpdateProposal(Keeping[ProposalEdit]):
    name = "update_proposal"
    description = "Put a proposal that is still open into other words, or say that one that was accepted is done."
    wording = Wording(
        "message-circle",
        "Change a proposal",
        "Changing a proposal",
        "Changed a proposal",
        "Could not change the proposal",
    )
    Arguments = ProposalEdit

    def expected(self, arguments: ProposalEdit, context: ToolContext) -> UndoRecord | None:
        kept = Proposal.objects.filter(pk=arguments.id, user=context.user_id, thread=context.thread_id).first()
        return expected(kept, partial(change_proposal, text=arguments.text, done=arguments.done))

    def run(self, arguments: ProposalEdit, context: ToolContext) -> Outcome:
        kept = locked(Proposal, context.user_id, arguments.id, context.thread_id)
        if kept is None:
            raise ToolError(NO_PROPOSAL)
        change = partial(change_proposal, text=arguments.text, done=arguments.done, sources=context.sources)
        with refusing():
            undo = changed(kept, change)
        kept.save()
        return Outcome(f"The proposal is {kept.state}.", clip(kept.text, 80), undo)


class ListProposals(Reflecting[NothingAsked]):
    name = "list_proposals"
    description = f"List the last {SHOWN} proposals to the user, the newest first, with what they decided."
    wording = Wording(
        "message-circle",
        "Look at proposals",
        "Looking at proposals",
        "Looked at proposals",
        "Could not look at proposals",
    )
    Arguments = NothingAsked

    def run(self, arguments: NothingAsked, context: ToolContext) -> Outcome:
        mine = Proposal.objects.filter(user=context.user_id, thread=context.thread_id)
        found = list(mine.order_by("-created_at", "-id")[:SHOWN])
        lines = [f"- {kept.state} (id {kept.pk}): {clip(kept.text, 300)}" for kept in found]
        sources = merged(*(kept.sources for kept in found))
        return Outcome("\n".join(lines) or "There is none.", f"{len(found)} found", sources=sources)


def _told(kept: Assessment) -> str:
    quotes = [f"- “{quote.quote}”" for quote in read(kept.evidence)]
    return "\n".join([f"{kept.created_at:%Y-%m-%d} (id {kept.pk}): {kept.text}", *quotes])

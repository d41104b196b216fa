"""How the record speaks of what people decide about their parts (`tools.part_deeds`). No agent is offered these."""

from uuid import UUID

from tools.base import Arguments, Effect, Outcome, Pack, Reversal, Tool, ToolContext, ToolError, Wording


class OneRecord(Arguments):
    id: UUID


class Deed(Tool[OneRecord]):
    """Something that people alone do."""

    description = "Only the user does this."
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    pack = Pack.REFLECTIVE
    audience = frozenset()
    Arguments = OneRecord

    def run(self, arguments: OneRecord, context: ToolContext) -> Outcome:
        raise ToolError("Only the user does this, on their page.")


class ConfirmPart(Deed):
    name = "confirm_part"
    wording = Wording("check", "Confirming a part", "Confirmed a part", "Could not confirm a part")


class AcceptProposal(Deed):
    name = "accept_proposal"
    wording = Wording("check", "Accepting a proposal", "Accepted a proposal", "Could not accept a proposal")


class DeclineProposal(Deed):
    name = "decline_proposal"
    wording = Wording("x", "Declining a proposal", "Declined a proposal", "Could not decline a proposal")


class DeletePart(Deed):
    name = "delete_part"
    wording = Wording("trash-2", "Deleting a part", "Deleted a part", "Could not delete a part")


class DeleteAssessment(Deed):
    name = "delete_assessment"
    wording = Wording("trash-2", "Deleting an assessment", "Deleted an assessment", "Could not delete an assessment")


class DeleteProposal(Deed):
    name = "delete_proposal"
    wording = Wording("trash-2", "Deleting a proposal", "Deleted a proposal", "Could not delete a proposal")

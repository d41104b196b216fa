"""How the record speaks of what people decide about their parts (`tools.part_deeds`). No agent is offered these."""

from tools.base import Pack, Wording
from tools.deeds import Deed


class PartDeed(Deed):
    pack = Pack.REFLECTIVE


class ConfirmPart(PartDeed):
    name = "confirm_part"
    wording = Wording("check", "Confirm a part", "Confirming a part", "Confirmed a part", "Could not confirm a part")


class AcceptProposal(PartDeed):
    name = "accept_proposal"
    wording = Wording(
        "check", "Accept a proposal", "Accepting a proposal", "Accepted a proposal", "Could not accept a proposal"
    )


class DeclineProposal(PartDeed):
    name = "decline_proposal"
    wording = Wording(
        "x", "Decline a proposal", "Declining a proposal", "Declined a proposal", "Could not decline a proposal"
    )


class DeletePart(PartDeed):
    name = "delete_part"
    wording = Wording("trash-2", "Delete a part", "Deleting a part", "Deleted a part", "Could not delete a part")


class DeleteAssessment(PartDeed):
    name = "delete_assessment"
    wording = Wording(
        "trash-2",
        "Delete an assessment",
        "Deleting an assessment",
        "Deleted an assessment",
        "Could not delete an assessment",
    )


class DeleteProposal(PartDeed):
    name = "delete_proposal"
    wording = Wording(
        "trash-2", "Delete a proposal", "Deleting a proposal", "Deleted a proposal", "Could not delete a proposal"
    )

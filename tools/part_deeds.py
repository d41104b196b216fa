"""What people decide about what a reflective companion keeps of them: only they confirm a part, accept a proposal, or
delete (mission D11). Each is on record with the way back."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from tools.deeds import by_person
from tools.models import AgentAction
from tools.part_models import Part, Proposal, ProposalState, Record
from tools.part_restoring import changed, image, recorded
from tools.parts import confirm, decide, locked

DECIDING = {ProposalState.ACCEPTED: "accept_proposal", ProposalState.DECLINED: "decline_proposal"}


def confirm_part(user: User, part_id: UUID, shown: str) -> AgentAction | None:
    """Confirm a part as it was looked at. None: there is no such part of the user's.

    Raises:
        RecordRefused: it was changed since, or is confirmed already.
    """
    change = partial(confirm, shown=shown)
    return _changed(user, Part, part_id, change, "confirm_part", "has confirmed a part of theirs")


def decide_proposal(user: User, proposal_id: UUID, state: ProposalState, shown: str) -> AgentAction | None:
    """Accept or decline a proposal as it was looked at. None: there is no such proposal to the user.

    Raises:
        RecordRefused: it was changed since, or was decided.
    """
    change = partial(decide, state=state, shown=shown)
    return _changed(user, Proposal, proposal_id, change, DECIDING[state], f"has {state} your proposal")


def delete_record(user: User, model: type[Record], record_id: UUID) -> AgentAction | None:
    """Delete a record. None: there is no such record of the user's."""
    with transaction.atomic():
        record = locked(model, user.pk, record_id)
        if record is None:
            return None
        undo = recorded(record, image(record), None)
        assert undo is not None
        news = f"has deleted this {model.kind()} that you kept"
        deed = by_person(record.thread, f"delete_{model.kind()}", {"id": str(record.pk)}, record.title(), undo, news)
        record.delete()
        return deed


def _changed[R: Record](
    user: User, model: type[R], record_id: UUID, change: Callable[[R], None], deed: str, news: str
) -> AgentAction | None:
    with transaction.atomic():
        record = locked(model, user.pk, record_id)
        if record is None:
            return None
        undo = changed(record, change)
        assert undo is not None
        record.save()
        return by_person(record.thread, deed, {"id": str(record.pk)}, record.title(), undo, news)

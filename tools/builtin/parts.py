"""Parts of the person, as a reflective companion knows them (mission D11). A call that a stranger may have asked for
writes nothing about a person: it waits for their word."""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from pydantic import Field

from memory.marks import merged
from memory.text import clip
from tools.base import Arguments, Outcome, ToolContext, ToolError, Wording
from tools.changes import UndoRecord
from tools.part_models import Part, Standing
from tools.part_restoring import changed, image, recorded
from tools.parts import add_evidence, change_part, create_part, locked, searched
from tools.quotes import read
from tools.reflecting import Evidence, Keeping, Reflecting, expected, refusing
from tools.rows import thread_of

NO_PART = "There is no part with this id in this conversation; search_parts gives the ids."
ROLE = "What it does, in a word or two: protector, manager, firefighter, exile, or the user's own word."
LINES = "One short line each"


class PartQuery(Arguments):
    query: str = Field("", description="Words that must all occur in it; leave it out to list all parts.")


class SearchParts(Reflecting[PartQuery]):
    name = "search_parts"
    description = (
        "Search the parts of the user that are known (parts work as in internal family systems), or list all. Look "
        "here before you create one."
    )
    wording = Wording(
        "search",
        "Look through your parts",
        "Looking through your parts",
        "Looked through your parts",
        "Could not look at parts",
    )
    Arguments = PartQuery

    def run(self, arguments: PartQuery, context: ToolContext) -> Outcome:
        found = searched(context.user_id, context.thread_id, arguments.query)
        lines = [f"- **{part.name}** ({part.role}), {part.status} (id {part.pk})" for part in found]
        sources = merged(*(part.sources for part in found))
        return Outcome("\n".join(lines) or "No part was found.", f"{len(found)} found", sources=sources)


class Traits(Arguments):
    beliefs: list[str] | None = Field(None, description=f"What it holds to be true. {LINES}.")
    fears: list[str] | None = Field(None, description=f"What it is afraid of. {LINES}.")
    needs: list[str] | None = Field(None, description=f"What it needs. {LINES}.")
    body: list[str] | None = Field(None, description=f"Where and how it is felt in the body. {LINES}.")
    evidence: Evidence

    @property
    def attributes(self) -> dict[str, Sequence[str]]:
        given = {"beliefs": self.beliefs, "fears": self.fears, "needs": self.needs, "body": self.body}
        return {name: lines for name, lines in given.items() if lines is not None}


class NewPart(Traits):
    name: str = Field(description="What the user calls it, or a name in their words.")
    role: str = Field(description=ROLE)


class CreateEmergingPart(Keeping[NewPart]):
    name = "create_emerging_part"
    description = (
        "Keep a part of the user that shows itself in what they wrote. It needs their own words as evidence, and "
        "stays emerging until they confirm it on their page; tell them that it is there to be looked at."
    )
    wording = Wording(
        "notebook-pen", "Note a part of you", "Noting a part of you", "Noted a part of you", "Could not note a part"
    )
    Arguments = NewPart

    def subject(self, arguments: NewPart) -> str:
        return clip(arguments.name, 80)

    def run(self, arguments: NewPart, context: ToolContext) -> Outcome:
        about = arguments.name, arguments.role, arguments.attributes, arguments.evidence
        with refusing():
            part = create_part(thread_of(context), *about, context.sources)
        done = f"The part {part.name!r} (id {part.pk}) is kept as emerging. Only the user can confirm it."
        return Outcome(done, clip(part.name, 80), recorded(part, None, image(part)))


class PartEdit(Traits):
    id: UUID = Field(description="Of the part, as search_parts gives it.")
    name: str | None = Field(None, description="A new name; leave it out to keep it.")
    role: str | None = Field(None, description=f"{ROLE} Leave it out to keep it.")


class UpdatePartAttributes(Keeping[PartEdit]):
    name = "update_part_attributes"
    description = (
        "Change what is known of a part of the user. Lists are replaced as a whole, so get its details before; what is "
        "left out stays. It needs their own words as evidence, and they must confirm the part anew."
    )
    wording = Wording(
        "notebook-pen",
        "Change a part of you",
        "Changing a part of you",
        "Changed a part of you",
        "Could not change the part",
    )
    Arguments = PartEdit

    def expected(self, arguments: PartEdit, context: ToolContext) -> UndoRecord | None:
        return expected(_found(context, arguments.id), partial(_change, edit=arguments))

    def run(self, arguments: PartEdit, context: ToolContext) -> Outcome:
        part = _locked(context, arguments.id)
        with refusing():
            undo = changed(part, partial(_change, edit=arguments, sources=context.sources))
        part.save()
        state = "It is as the user confirmed it." if part.status is Standing.CONFIRMED else "It is emerging."
        return Outcome(f"Changed the part {part.name!r}. {state}", clip(part.name, 80), undo)


class OnePart(Arguments):
    id: UUID = Field(description="Of the part, as search_parts gives it.")


class GetPartDetails(Reflecting[OnePart]):
    name = "get_part_details"
    description = "Read all that is known of one part of the user, with its evidence."
    wording = Wording(
        "notebook-pen",
        "Read about a part of you",
        "Reading about a part of you",
        "Read about a part of you",
        "Could not read that",
    )
    Arguments = OnePart

    def run(self, arguments: OnePart, context: ToolContext) -> Outcome:
        part = _known(context, arguments.id)
        text = f"{part.words}\nStatus: {part.status}\n\n{_evidence(part)}"
        return Outcome(text, clip(part.name, 80), sources=part.sources)


class MoreEvidence(OnePart):
    evidence: Evidence


class AddEvidence(Keeping[MoreEvidence]):
    name = "add_evidence"
    description = "Add words of the user to the evidence of a part of theirs."
    wording = Wording(
        "notebook-pen",
        "Add your words to a part",
        "Adding your words to a part",
        "Added your words to a part",
        "Could not add them",
    )
    Arguments = MoreEvidence

    def run(self, arguments: MoreEvidence, context: ToolContext) -> Outcome:
        part = _locked(context, arguments.id)
        with refusing():
            undo = changed(part, partial(add_evidence, quotes=arguments.evidence, sources=context.sources))
        part.save()
        done = f"The part {part.name!r} has {len(part.evidence)} quotes as evidence now."
        return Outcome(done, clip(part.name, 80), undo)


class ListEvidence(Reflecting[OnePart]):
    name = "list_evidence"
    description = "List the words of the user that are kept as evidence of a part of theirs, with when they wrote them."
    wording = Wording(
        "notebook-pen",
        "Read your words on a part",
        "Reading your words on a part",
        "Read your words on a part",
        "Could not read them",
    )
    Arguments = OnePart

    def run(self, arguments: OnePart, context: ToolContext) -> Outcome:
        part = _known(context, arguments.id)
        return Outcome(_evidence(part), clip(part.name, 80), sources=part.sources)


def _change(part: Part, edit: PartEdit, sources: Sequence[str] = ()) -> None:
    change_part(part, name=edit.name, role=edit.role, attributes=edit.attributes)
    add_evidence(part, edit.evidence, sources)


def _evidence(part: Part) -> str:
    quotes = [f"- “{quote.quote}” ({quote.said_at:%Y-%m-%d %H:%M} UTC)" for quote in read(part.evidence)]
    return "\n".join(["What the user wrote:", *quotes])


def _found(context: ToolContext, part_id: UUID) -> Part | None:
    return Part.objects.filter(pk=part_id, user=context.user_id, thread=context.thread_id).first()


def _known(context: ToolContext, part_id: UUID) -> Part:
    part = _found(context, part_id)
    if part is None:
        raise ToolError(NO_PART)
    return part


def _locked(context: ToolContext, part_id: UUID) -> Part:
    part = locked(Part, context.user_id, part_id, context.thread_id)
    if part is None:
        raise ToolError(NO_PART)
    return part

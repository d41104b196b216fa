"""What a reflective companion keeps of a person: read, confirmed, decided about, deleted (mission D11). What is done to
it answers an action, which can be undone."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.serializers import ActionShape
from goals.api.goals import GoalThread
from goals.part_shapes import DECISIONS, AssessmentShape, ConfirmBody, DecideBody, PartShape, ProposalShape
from tools.models import AgentAction
from tools.part_deeds import confirm_part, decide_proposal, delete_record
from tools.part_models import Assessment, Part, Proposal


class GoalParts(GoalThread):
    @listed("Part", PartShape, "List the parts of you that a goal's agent knows, newest first")
    def get(self, request: Request, goal_id: UUID) -> Response:
        return page(request, Part.objects.filter(thread=self.thread()), NEWEST_FIRST, part_json)


class OnePart(ApiView):
    access = Access.OWN

    @documented("Read a part of you, with its evidence", {200: PartShape}, errors=(401, 404))
    def get(self, request: Request, part_id: UUID) -> Response:
        return Response(part_json(get_object_or_404(Part.objects.for_user(self.user), pk=part_id)))

    @documented("Delete a part; what is answered can be undone", {200: ActionShape}, errors=(401, 404))
    def delete(self, request: Request, part_id: UUID) -> Response:
        return done(delete_record(self.user, Part, part_id))


class ConfirmPart(ApiView):
    access = Access.OWN

    @documented("Confirm a part of you, as you were shown it", {200: ActionShape}, body=ConfirmBody)
    def post(self, request: Request, part_id: UUID) -> Response:
        """400 when it says something else by now, or is confirmed already. What is answered can be undone."""
        return done(confirm_part(self.user, part_id, self.body(ConfirmBody)["shown"]))


class GoalAssessments(GoalThread):
    @listed("Assessment", AssessmentShape, "List how things stood, newest first")
    def get(self, request: Request, goal_id: UUID) -> Response:
        return page(request, Assessment.objects.filter(thread=self.thread()), NEWEST_FIRST, assessment_json)


class OneAssessment(ApiView):
    access = Access.OWN

    @documented("Read an assessment, with its evidence", {200: AssessmentShape}, errors=(401, 404))
    def get(self, request: Request, assessment_id: UUID) -> Response:
        return Response(assessment_json(get_object_or_404(Assessment.objects.for_user(self.user), pk=assessment_id)))

    @documented("Delete an assessment; what is answered can be undone", {200: ActionShape}, errors=(401, 404))
    def delete(self, request: Request, assessment_id: UUID) -> Response:
        return done(delete_record(self.user, Assessment, assessment_id))


class GoalProposals(GoalThread):
    @listed("Proposal", ProposalShape, "List what a goal's agent proposes to you, newest first")
    def get(self, request: Request, goal_id: UUID) -> Response:
        return page(request, Proposal.objects.filter(thread=self.thread()), NEWEST_FIRST, proposal_json)


class OneProposal(ApiView):
    access = Access.OWN

    @documented("Read a proposal", {200: ProposalShape}, errors=(401, 404))
    def get(self, request: Request, proposal_id: UUID) -> Response:
        return Response(proposal_json(get_object_or_404(Proposal.objects.for_user(self.user), pk=proposal_id)))

    @documented("Delete a proposal; what is answered can be undone", {200: ActionShape}, errors=(401, 404))
    def delete(self, request: Request, proposal_id: UUID) -> Response:
        return done(delete_record(self.user, Proposal, proposal_id))


class DecideProposal(ApiView):
    access = Access.OWN

    @documented("Accept or decline a proposal, as you were shown it", {200: ActionShape}, body=DecideBody)
    def post(self, request: Request, proposal_id: UUID) -> Response:
        """400 when it says something else by now, or was decided. What is answered can be undone."""
        given = self.body(DecideBody)
        return done(decide_proposal(self.user, proposal_id, DECISIONS[given["decision"]], given["shown"]))


def done(action: AgentAction | None) -> Response:
    if action is None:
        raise Http404
    return Response(ActionShape(action).data)


def part_json(part: Part) -> dict[str, Any]:
    return PartShape(part).data


def assessment_json(assessment: Assessment) -> dict[str, Any]:
    return AssessmentShape(assessment).data


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    return ProposalShape(proposal).data

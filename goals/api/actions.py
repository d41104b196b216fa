"""What was done in the user's name, the newest first, as the page of activity shows it (mission D7)."""

from typing import Any

from django.db.models import Q
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import page
from agents.api.schema import listed
from goals.action_shapes import FoundAction, SoughtQuery
from goals.activity import below
from goals.models import Goal
from tools.models import NEWEST_FIRST, AgentAction
from tools.sought import LOOKED_THROUGH, Kind, Sought, State, Who

FILTERS = [
    OpenApiParameter("goal", OpenApiTypes.UUID, description="Only what was done for this goal, also by its helpers"),
    OpenApiParameter(
        "q", str, description=f"Words that must all occur, in the newest {LOOKED_THROUGH:,} that are left"
    ),
    OpenApiParameter("tool", str, description="By name; then of any kind"),
    OpenApiParameter("who", str, enum=[who.value for who in Who]),
    OpenApiParameter("kind", str, enum=[kind.value for kind in Kind], default=Kind.CHANGES.value),
    OpenApiParameter("state", str, enum=[state.value for state in State], description="`waiting`: asks you something"),
    OpenApiParameter("since", OpenApiTypes.DATETIME, description="When it was asked for; with a time zone"),
    OpenApiParameter("until", OpenApiTypes.DATETIME, description="Before this moment"),
]


class Actions(ApiView):
    access = Access.OWN

    @listed("FoundAction", FoundAction, "List what was done in your name, newest first", query=FILTERS)
    def get(self, request: Request) -> Response:
        given = SoughtQuery(data=request.query_params.dict())
        given.is_valid(raise_exception=True)
        asked = dict(given.validated_data)
        goal_id = asked.pop("goal", None)
        within = below(get_object_or_404(Goal.objects.for_user(self.user), pk=goal_id).thread_id) if goal_id else Q()
        mine = AgentAction.objects.for_user(self.user).filter(within)
        found = Sought(text=asked.pop("q", ""), **asked).among(mine).with_standing()
        of_goals = found.annotate(goal=Coalesce("thread__goals_goal", "thread__agents_agenttask__parent__goals_goal"))
        return page(request, of_goals, NEWEST_FIRST, found_json)


def found_json(action: AgentAction) -> dict[str, Any]:
    return FoundAction(action).data

"""What the user's agents have cost."""

import zoneinfo
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.cost_rows import Row, as_json, rows, spending_json
from agents.cost_shapes import CostsShape
from agents.costs import By, total
from agents.periods import days, period
from agents.services import assistant_of
from goals.models import Goal

BYS = [By.MODEL.value, By.AGENT.value, By.DAY.value, By.MONTH.value]
QUERY = [
    OpenApiParameter("by", str, enum=BYS, default=By.MODEL.value),
    OpenApiParameter("since", OpenApiTypes.DATE, description="The first day; left out, the first of the month"),
    OpenApiParameter("until", OpenApiTypes.DATE, description="The last day; left out, today"),
]


class Costs(ApiView):
    access = Access.OWN

    @documented("Sum up what your agents have cost", {200: CostsShape}, query=QUERY, errors=(400, 401))
    def get(self, request: Request) -> Response:
        """By model, goal (with its tasks), day or month. A call of unknown cost is counted in `unpriced` and is in no
        sum."""
        by = self._by()
        zone = zoneinfo.ZoneInfo(assistant_of(self.user).time_zone)
        since, until = days(request.query_params.dict(), zone)
        found = rows(by, period(since, until, zone), self.user)
        spent = total({at: row.spending for at, row in enumerate(found)})
        answer = {"by": by.value, "since": since, "until": until, "total": spending_json(spent)}
        return Response({**answer, "results": [_shown(row) for row in found]})

    def _by(self) -> By:
        asked = self.request.query_params.get("by", By.MODEL.value)
        if asked not in BYS:
            raise ValidationError({"by": [f"One of {', '.join(BYS)}."]})
        return By(asked)


def _shown(row: Row) -> dict[str, Any]:
    if row.owner is None:
        return as_json(row)
    goal = row.owner.pk if isinstance(row.owner, Goal) else None
    return {"goal": goal, "title": row.owner.name(), **spending_json(row.spending)}

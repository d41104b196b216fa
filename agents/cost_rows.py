"""Sums of costs as rows: for pages, for the API, and as CSV."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse

from agents.agentable import Agentable
from agents.costs import By, Period, Spending, Sums, by_owner, spent
from agents.model_connection import model_name
from agents.providers.pricing import dollars
from memory.sheets import line

COUNTS = ("calls", "unpriced", "estimated", "partial")
TOKENS = ("input", "cached", "written", "output")
DELETED = "Deleted goals"


@dataclass(frozen=True, slots=True)
class Row:
    """key: what the sum is of, by name, for programs. label: the same in one line, for people. owner: of By.AGENT."""

    key: Mapping[str, Any]
    label: str
    spending: Spending
    owner: Agentable | None = None


def rows(by: By, period: Period, user: User | None = None) -> list[Row]:
    """The sums by one thing: days and months in order, everything else the dearest first."""
    sums = spent(by, period, user)
    found = _of_agents(sums, with_user=user is None) if by is By.AGENT else [_row(by, *each) for each in sums.items()]
    if by in (By.DAY, By.MONTH):
        return sorted(found, key=lambda row: row.label)
    return sorted(found, key=lambda row: (-row.spending.cost, -row.spending.unpriced, row.label))


def _row(by: By, key: tuple[Any, ...], spending: Spending) -> Row:
    if by is By.MODEL:
        return Row({"provider": key[0], "model": key[1]}, model_name(*key), spending)
    text = str(key[0])[:7] if by is By.MONTH else str(key[0])
    return Row({by.value: text}, text, spending)


def _of_agents(sums: Sums, *, with_user: bool) -> list[Row]:
    found = []
    for owner, spending in by_owner(sums).items():
        key = {"id": str(owner.pk), "kind": owner.kind(), "title": owner.name()}
        label = f"{owner.name()} ({owner.user.email})" if with_user else owner.name()
        found.append(Row(key, label, spending, owner))
    if deleted := sums.get((None,)):
        found.append(Row({"goal": None, "title": DELETED}, DELETED, deleted))
    return found


def as_json(row: Row) -> dict[str, Any]:
    return {**row.key, **spending_json(row.spending)}


def spending_json(spending: Spending) -> dict[str, Any]:
    counts = {name: getattr(spending, name) for name in COUNTS}
    tokens = {name: getattr(spending, name) for name in TOKENS}
    return {**counts, "tokens": tokens, "cost": dollars(spending.cost)}


def as_csv(by: By, found: Iterable[Row], name: str) -> HttpResponse:
    """A file to keep, one line for each row; amounts are exact, and `unpriced` calls are not in them."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    answer.write(line([by.value, *COUNTS, *(f"{name}_tokens" for name in TOKENS), "cost_usd"]))
    for row in found:
        spending = row.spending
        figures = [getattr(spending, name) for name in (*COUNTS, *TOKENS)]
        answer.write(line([row.label, *figures, dollars(spending.cost)]))
    return answer

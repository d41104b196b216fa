"""What may be spent, over the API."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.budgets.models import MOST_DOLLARS, MOST_TOKENS, Budget, Window
from agents.budgets.services import MORE, allow_more, current, remove_budget, set_budget
from agents.providers.pricing import dollars
from agents.serializers import Strict
from memory.models import Thread


class Dollars(serializers.DecimalField):
    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_digits=12, decimal_places=4, min_value=Decimal(0), max_value=Decimal(MOST_DOLLARS), **options
        )


class BudgetBody(Strict):
    window = serializers.ChoiceField(Window.choices)
    money = Dollars(required=False, allow_null=True, help_text="US dollars, as a string")
    tokens = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MOST_TOKENS)
    thread = serializers.UUIDField(
        required=False, allow_null=True, help_text="Of a goal or a task; without it the budget is for everything"
    )


class LimitsBody(Strict):
    money = Dollars(required=False, allow_null=True)
    tokens = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=MOST_TOKENS)


class MoreBody(Strict):
    money = Dollars(required=False, help_text="US dollars for the present window only; 1 when left out")


class BudgetShape(serializers.Serializer[Budget]):
    id = serializers.UUIDField()
    window = serializers.ChoiceField(Window.choices)
    thread = serializers.UUIDField(allow_null=True)
    money = serializers.CharField(allow_null=True, help_text="The limit in US dollars")
    tokens = serializers.IntegerField(allow_null=True)
    extra = serializers.CharField(help_text="US dollars added for the present window")
    spent = serializers.CharField(help_text="In the present window; of a call without a price its worst is counted")
    spent_tokens = serializers.IntegerField()
    reserved = serializers.CharField(help_text="Held for calls under way")


class BudgetList(serializers.Serializer[Any]):
    results = BudgetShape(many=True)
    next = serializers.CharField(allow_null=True)


def shown(budget: Budget) -> dict[str, object]:
    return {
        "id": budget.pk,
        "window": budget.window,
        "thread": budget.thread_id,
        "money": None if budget.money is None else dollars(budget.money),
        "tokens": budget.tokens,
        "extra": dollars(budget.extra),
        "spent": dollars(budget.spent),
        "spent_tokens": budget.spent_tokens,
        "reserved": dollars(budget.reserved),
    }


class BudgetView(ApiView):
    access = Access.OWN

    def found(self, budget_id: UUID) -> Budget:
        budget = Budget.objects.for_user(self.user).select_related("user").filter(pk=budget_id).first()
        if budget is None:
            raise NotFound
        return current([budget], self.user)[0]

    def thread(self, thread_id: UUID | None) -> Thread | None:
        if thread_id is None:
            return None
        thread = Thread.objects.for_user(self.user).filter(pk=thread_id).first()
        if thread is None:
            raise ValidationError({"thread": ["There is no such thread."]})
        return thread

    def set(self, window: str, money: Decimal | None, tokens: int | None, thread: Thread | None) -> dict[str, object]:
        if money is None and tokens is None:
            raise ValidationError({"money": ["Give a limit in dollars or in tokens."]})
        return shown(set_budget(self.user, window, money, tokens, thread))


class Budgets(BudgetView):
    @documented("List the budgets, all of them", {200: BudgetList}, errors=(401,), name="budgets_list")
    def get(self, request: Request) -> Response:
        budgets = current(Budget.objects.for_user(self.user).select_related("thread"), self.user)
        return Response({"results": [shown(budget) for budget in budgets], "next": None})

    @documented("Set a budget; one of the same window and thread is changed", {200: BudgetShape}, body=BudgetBody)
    def post(self, request: Request) -> Response:
        given = self.body(BudgetBody)
        thread = self.thread(given.get("thread"))
        return Response(self.set(given["window"], given.get("money"), given.get("tokens"), thread))


class OneBudget(BudgetView):
    @documented("Read a budget", {200: BudgetShape}, errors=(401, 404))
    def get(self, request: Request, budget_id: UUID) -> Response:
        return Response(shown(self.found(budget_id)))

    @documented("Change the limits; runs that wait for it go on", {200: BudgetShape}, body=LimitsBody)
    def patch(self, request: Request, budget_id: UUID) -> Response:
        budget, given = self.found(budget_id), self.body(LimitsBody)
        money, tokens = given.get("money", budget.money), given.get("tokens", budget.tokens)
        return Response(self.set(budget.window, money, tokens, budget.thread))

    @documented("Remove a budget; runs that wait for it go on", {204: None}, errors=(401, 404))
    def delete(self, request: Request, budget_id: UUID) -> Response:
        remove_budget(self.found(budget_id))
        return Response(status=204)


class MoreBudget(BudgetView):
    @documented("Allow more in the present window; runs that wait go on", {200: BudgetShape}, body=MoreBody)
    def post(self, request: Request, budget_id: UUID) -> Response:
        budget, given = self.found(budget_id), self.body(MoreBody)
        allow_more(budget, given.get("money", MORE))
        return Response(shown(self.found(budget_id)))

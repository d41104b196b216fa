"""Prices that the user has set."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from agents import prices
from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.cost_shapes import PriceBody, PriceShape
from agents.models import ModelPrice


class Prices(ApiView):
    access = Access.OWN

    @listed("Price", PriceShape, "List the prices that you have set")
    def get(self, request: Request) -> Response:
        return page(request, ModelPrice.objects.for_user(self.user), NEWEST_FIRST, price_json)

    @documented("Set what a model costs you, from the next run on", {201: PriceShape}, body=PriceBody)
    def post(self, request: Request) -> Response:
        """A price of the same model is replaced. What was charged before stays."""
        price = prices.set_price(self.user, **self.body(PriceBody))
        return Response(price_json(price), status=201)


class OnePrice(ApiView):
    access = Access.OWN

    @documented("Remove a price; the list price holds again", {204: None}, errors=(401, 404))
    def delete(self, request: Request, price_id: UUID) -> Response:
        prices.remove_price(get_object_or_404(ModelPrice.objects.for_user(self.user), pk=price_id))
        return Response(status=204)


def price_json(price: ModelPrice) -> dict[str, Any]:
    return PriceShape(price).data

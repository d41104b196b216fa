"""The shapes of costs and prices in the API."""

from decimal import Decimal
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.models import ModelPrice
from agents.prices import amount
from agents.providers.pricing import dollars
from agents.refusals import Refused
from agents.serializers import Strict, TextField, TokensShape


class SpendingShape(serializers.Serializer[Any]):
    calls = serializers.IntegerField(help_text="Finished calls that were sent")
    unpriced = serializers.IntegerField(help_text="How many of them are of unknown cost, which is in no sum")
    estimated = serializers.IntegerField(help_text="How many have tokens that the server did not count")
    partial = serializers.IntegerField(  # type: ignore[assignment]
        help_text="How many broke off, and may have used more"
    )
    tokens = TokensShape()
    cost = serializers.CharField(help_text="US dollars as a decimal string; the known part")


class CostShape(SpendingShape):
    provider = serializers.CharField(required=False, help_text="Of `by=model`")
    model = serializers.CharField(required=False, help_text="Of `by=model`")
    goal = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="Of `by=goal`, with its tasks; null: the assistant, or the deleted",
    )
    title = serializers.CharField(required=False, help_text="Of `by=goal`")
    day = serializers.DateField(required=False, help_text="Of `by=day`, in your time zone")
    month = serializers.CharField(required=False, help_text="Of `by=month`: 2026-11")


class CostsShape(serializers.Serializer[Any]):
    by = serializers.CharField()
    since = serializers.DateField(help_text="The first day, in your time zone")
    until = serializers.DateField(help_text="The last day")
    total = SpendingShape()
    results = CostShape(many=True)


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "number"}]})
class AmountField(serializers.Field[Any, Any, Any, Any]):
    """US dollars per million tokens, as text or as a number; `agents.prices` reads it (case COS-02 e)."""

    def to_internal_value(self, data: Any) -> Decimal | None:
        try:
            return amount(data)
        except Refused as refused:
            raise serializers.ValidationError(refused.message) from refused

    def to_representation(self, value: Decimal) -> str:
        return dollars(value)


class PriceBody(Strict):
    kind = serializers.CharField(max_length=20, help_text="Of the connection, such as openai")
    model = TextField()
    input = AmountField(help_text="US dollars per million tokens")
    output = AmountField()
    cached = AmountField(required=False, allow_null=True, help_text="Read from the cache; null: as all input")
    written = AmountField(required=False, allow_null=True, help_text="Written to the cache; null: as all input")


class PriceShape(serializers.Serializer[ModelPrice]):
    id = serializers.UUIDField()
    kind = serializers.CharField()
    model = serializers.CharField()
    input = AmountField(help_text="US dollars per million tokens as a decimal string, as all amounts here")
    output = AmountField()
    cached = AmountField(allow_null=True)
    written = AmountField(allow_null=True)

"""The shapes of what a reflective companion keeps, in the API."""

from typing import Any, Final

from rest_framework import serializers

from agents.serializers import Strict
from tools.part_models import Assessment, Part, Proposal, ProposalState, Standing
from tools.parts import digest_of
from tools.quotes import read

DECISIONS: Final = {"accept": ProposalState.ACCEPTED, "decline": ProposalState.DECLINED}


class QuoteShape(serializers.Serializer[Any]):
    quote = serializers.CharField(help_text="Your own words")
    message = serializers.UUIDField(help_text="Where they stand")
    said_at = serializers.DateTimeField()


class AttributesShape(serializers.Serializer[Any]):
    beliefs = serializers.ListField(child=serializers.CharField())
    fears = serializers.ListField(child=serializers.CharField())
    needs = serializers.ListField(child=serializers.CharField())
    body = serializers.ListField(child=serializers.CharField(), help_text="Where and how it is felt")


class WithEvidence(serializers.Serializer[Any]):
    evidence = serializers.SerializerMethodField()

    def get_evidence(self, record: Part | Assessment) -> list[dict[str, Any]]:
        return [QuoteShape(quote).data for quote in read(record.evidence)]


class PartShape(WithEvidence, serializers.ModelSerializer[Part]):
    status = serializers.ChoiceField(Standing.choices, help_text="confirmed: by you, as it is now")
    attributes = AttributesShape()
    shown = serializers.SerializerMethodField(help_text="Send it with your word: it holds for what you were shown")

    class Meta:
        model = Part
        fields = [
            *("id", "name", "role", "status", "attributes", "evidence", "sources", "shown", "created_at", "updated_at"),
        ]
        read_only_fields = fields

    def get_shown(self, part: Part) -> str:
        return digest_of(part)


class AssessmentShape(WithEvidence, serializers.ModelSerializer[Assessment]):
    class Meta:
        model = Assessment
        fields = ["id", "text", "evidence", "sources", "created_at"]
        read_only_fields = fields


class ProposalShape(serializers.ModelSerializer[Proposal]):
    state = serializers.ChoiceField(ProposalState.choices)
    shown = serializers.SerializerMethodField(help_text="Send it with your word: it holds for what you were shown")

    class Meta:
        model = Proposal
        fields = ["id", "text", "state", "sources", "shown", "created_at", "updated_at"]
        read_only_fields = fields

    def get_shown(self, proposal: Proposal) -> str:
        return digest_of(proposal)


class ConfirmBody(Strict):
    shown = serializers.CharField(max_length=64, help_text="Of the part, as you read it")


class DecideBody(Strict):
    decision = serializers.ChoiceField(list(DECISIONS))
    shown = serializers.CharField(max_length=64, help_text="Of the proposal, as you read it")

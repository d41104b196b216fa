"""The shapes of approvals in the API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.proposed_call import ProposedCall
from agents.serializers import Strict, TextField
from tools.models import Approval, ApprovalState, Cause
from tools.trust import Earned, Scope


class WouldChange(serializers.Serializer[object]):
    kind = serializers.CharField()
    id = serializers.CharField()
    name = serializers.CharField()
    before = serializers.DictField(allow_null=True, help_text="Null: it would be created")
    after = serializers.DictField(allow_null=True, help_text="Null: it would be removed; else the fields that change")


class ApprovalShape(serializers.ModelSerializer[Approval]):
    id = serializers.UUIDField(source="pk", help_text="Also the id of the call")
    tool = serializers.CharField(source="action.tool")
    arguments = serializers.DictField(source="action.arguments")
    reversal = serializers.CharField(source="action.reversal")
    run = serializers.UUIDField(source="action.run_id")
    state = serializers.ChoiceField(ApprovalState.choices)
    cause = serializers.ChoiceField(Cause.choices, help_text="Why it is asked")
    sources = serializers.ListField(
        child=serializers.CharField(), help_text="Whose texts the agent had read; then it is asked whatever is allowed"
    )
    hash = serializers.SerializerMethodField(help_text="Of what is shown here; a decision must name it")
    would_change = serializers.SerializerMethodField(help_text="What it would change if it ran now, if that is known")
    may_allow = serializers.SerializerMethodField(help_text="What may be allowed from now on with an approval")

    class Meta:
        model = Approval
        fields = [
            *("id", "run", "tool", "arguments", "reversal", "state", "cause", "sources", "hash", "reason"),
            *("would_change", "may_allow"),
            *("requested_at", "expires_at", "decided_at"),
        ]
        read_only_fields = fields

    def to_representation(self, approval: Approval) -> dict[str, Any]:
        """What a call would change is read once for all that says something of it. Context `earned`: of the user."""
        is_open = approval.state == ApprovalState.REQUESTED
        self._proposal = ProposedCall(approval.action) if is_open else None
        shown: dict[str, Any] = super().to_representation(approval)
        return shown

    def get_hash(self, approval: Approval) -> str:
        return self._proposal.shown if self._proposal else approval.digest

    @extend_schema_field(WouldChange(many=True))
    def get_would_change(self, approval: Approval) -> list[dict[str, object]]:
        would = self._proposal.would if self._proposal else None
        return [change.model_dump(mode="json") for change in would.changes] if would else []

    @extend_schema_field(serializers.ListField(child=serializers.ChoiceField(Scope.choices)))
    def get_may_allow(self, approval: Approval) -> list[str]:
        earned: Earned = self.context["earned"]
        return list(earned.scopes(approval)) if self._proposal else []


class DecisionBody(Strict):
    decision = serializers.ChoiceField(["approve", "reject", "edit"])
    hash = serializers.CharField(max_length=64)
    reason = TextField(required=False, help_text="Of a rejection; told to the agent")
    allow = serializers.ChoiceField(Scope.choices, required=False, help_text="From now on, with an approval")
    arguments = serializers.DictField(required=False, help_text="All of the call's, with an edit")

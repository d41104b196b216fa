"""What a call that waits would do, as its user is shown it before they decide."""

from functools import cached_property

from pydantic import ValidationError

from tools import registry
from tools.approvals import target
from tools.base import Arguments, ToolContext
from tools.cancel import CancelToken
from tools.changes import UndoRecord
from tools.models import AgentAction
from tools.registry import AnyTool
from tools.signature import digest, shown


class ProposedCall:
    """A recorded call with an approval. Reads what its tool would change, once."""

    def __init__(self, action: AgentAction) -> None:
        self.action = action

    @cached_property
    def tool(self) -> AnyTool | None:
        return registry.find(self.action.tool, self.action.user_id)

    @cached_property
    def would(self) -> UndoRecord | None:
        """What it would change if it ran now; None when nobody can tell."""
        arguments = self._arguments()
        if self.tool is None or arguments is None:
            return None
        return self.tool.expected(arguments, self._context())

    @property
    def target(self) -> str:
        return target(self.action.arguments, lambda: self.would)

    @property
    def shown(self) -> str:
        """Identifies what is shown here; a decision names it."""
        return shown(digest(self.action.tool, self.action.arguments), self.would)

    def _arguments(self) -> Arguments | None:
        try:
            found: Arguments | None = self.tool.Arguments.model_validate(self.action.arguments) if self.tool else None
        except ValidationError:
            return None
        return found

    def _context(self) -> ToolContext:
        action = self.action
        assert action.run_id is not None  # a person's own doings wait for nobody
        return ToolContext(action.user_id, action.thread_id, action.run_id, action.pk, CancelToken())

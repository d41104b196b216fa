"""Whether what a call does can be taken back, said in the same words wherever somebody decides or looks back."""

from django.utils.translation import gettext as _

from tools.base import Reversal
from tools.registry import AnyTool


def way_back(reversal: str, tool: AnyTool | None) -> str:
    """Words without a full stop. tool: None when it is gone, or another's and not worth a query."""
    match Reversal(reversal):
        case Reversal.NOTHING:
            return _("Only reads")
        case Reversal.UNDOABLE:
            return _("Can be undone")
        case Reversal.COMPENSABLE if tool is not None and tool.way_back:
            return tool.way_back
        case _:
            return _("Cannot be undone")

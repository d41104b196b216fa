"""How a cell speaks of a call of a foreign tool. Everything is in the name, so nothing has to be looked up."""

from django.utils.translation import gettext as _

from memory.text import clip
from tools.base import Wording
from tools.mcp.naming import parted


def wording(server: str, tool: str) -> Wording:
    names = {"tool": clip(tool, 60), "server": server}
    return Wording(
        "plug",
        _("Use %(tool)s of %(server)s") % names,
        _("Using %(tool)s of %(server)s") % names,
        _("Used %(tool)s of %(server)s") % names,
        _("%(tool)s of %(server)s failed") % names,
    )


def wording_of(name: str) -> Wording | None:
    """Of a tool by its name, also of one that is gone; None when it is no server's."""
    parts = parted(name)
    return wording(*parts) if parts else None

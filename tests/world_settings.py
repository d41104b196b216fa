"""The settings of worker processes whose agents may use the tools of `tests.world`."""

from config.settings import *  # noqa: F403
from config.settings import AGENT_TOOLS
from tests.world import TOOLS

AGENT_TOOLS = [*AGENT_TOOLS, *TOOLS]

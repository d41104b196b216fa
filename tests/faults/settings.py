"""The product's settings, and tools whose effects somebody outside counts."""

from config.settings import *  # noqa: F403
from config.settings import AGENT_TOOLS

TOOLS = ("Peek", "Jot", "Put", "Mail", "Wire", "Nap", "Fax", "Balk")
AGENT_TOOLS = [*AGENT_TOOLS, *(f"tests.faults.tools.{name}" for name in TOOLS)]

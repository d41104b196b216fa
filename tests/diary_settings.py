"""The settings of a server with one more kind of agent (docs/new-agent-kind.md)."""

from config.settings import *  # noqa: F403
from config.settings import AGENT_KINDS, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.diary"]
AGENT_KINDS = [*AGENT_KINDS, "tests.diary.models.Diary"]

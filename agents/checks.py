"""Start-up checks: a kind of agent that is wrong must not wait for its first run."""

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.module_loading import import_string

from agents.agentable import Agentable
from agents.prompts import exists


@register("agents")
def check_kinds(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    return [problem for path in settings.AGENT_KINDS for problem in _check(path)]


def _check(path: str) -> list[CheckMessage]:
    try:
        kind = import_string(path)
    except ImportError as error:
        return [Error(f"AGENT_KINDS: {error}", hint=f"Correct or remove {path!r}.", id="agents.E001")]
    if not (isinstance(kind, type) and issubclass(kind, Agentable)):
        return [Error(f"{path} is no Agentable.", id="agents.E002")]
    if not exists(kind.prompt):
        return [Error(f"{path} names the prompt {kind.prompt!r}, which has no file.", id="agents.E003")]
    return []

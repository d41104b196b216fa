"""Which kinds of provider there are. Behaviour by class, capability by data; a class is loaded on first use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import cast

from agents.providers.base import Endpoint, Provider


@dataclass(frozen=True, slots=True)
class Kind:
    """What forms and rules need to know.

    label, hint: for people.
    path: dotted path of the class, called with an Endpoint.
    default_base_url: empty when the user must give the address, or when there is none.
    needs_key: whether a call without a key is pointless. needs_url: whether there is an address at all.
    is_free: a call costs nothing. is_scripted: no model behind it, so there is nothing to test.
    is_slow: it is silent while it loads a model and reads a long prompt. says_alive: it is never silent, also while a
        model thinks; others may be until that has thought to the end.
    is_found: it may be found by itself on this machine. has_window: who asks says how long its context is to be.
    routes: it chooses among vendors (see `base.Routing`). free_mark: how names of models that cost nothing end.
    nobody: what is missing when nobody listens at the address.
    models: names to offer before the server was asked.
    """

    kind: str
    label: str
    hint: str
    path: str
    default_base_url: str = ""
    needs_key: bool = False
    needs_url: bool = True
    is_free: bool = False
    is_slow: bool = False
    says_alive: bool = False
    is_scripted: bool = False
    is_found: bool = False
    has_window: bool = False
    routes: bool = False
    free_mark: str = ""
    nobody: str = "Nothing"
    models: tuple[str, ...] = ()

    def may_be_silent(self, *, thinking: bool | None) -> bool:
        """Whether a call that is well may bring nothing for minutes, with a model that is known to be `thinking`."""
        return self.is_slow or (thinking is True and not self.says_alive)


_KINDS = (
    Kind(
        "demo",
        "Demonstration",
        "Scripted answers. No key is needed and nothing leaves this server.",
        "agents.providers.demo.DemoProvider",
        needs_url=False,
        is_free=True,
        is_scripted=True,
        models=("demo",),
    ),
    Kind(
        "openai",
        "OpenAI",
        "Models of OpenAI, billed to your account there.",
        "agents.providers.openai.OpenAIProvider",
        default_base_url="https://api.openai.com/v1",
        needs_key=True,
        models=("gpt-5.4-mini", "gpt-5.1", "gpt-5-mini"),
    ),
    Kind(
        "anthropic",
        "Anthropic",
        "Claude models, billed to your account at Anthropic.",
        "agents.providers.anthropic.AnthropicProvider",
        default_base_url="https://api.anthropic.com",
        needs_key=True,
        says_alive=True,
        models=("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"),
    ),
    Kind(
        "ollama",
        "Ollama",
        "Models on a machine of your own.",
        "agents.providers.ollama.OllamaProvider",
        default_base_url="http://127.0.0.1:11434/v1",
        is_free=True,
        is_slow=True,
        is_found=True,
        has_window=True,
        nobody="No Ollama",
    ),
    Kind(
        "openrouter",
        "OpenRouter",
        "Models of many vendors behind one key.",
        "agents.providers.openrouter.OpenRouterProvider",
        default_base_url="https://openrouter.ai/api/v1",
        needs_key=True,
        says_alive=True,
        routes=True,
        free_mark=":free",
    ),
    Kind(
        "compatible",
        "OpenAI-compatible server",
        "Any server that speaks Chat Completions: vLLM, LM Studio, llama.cpp, a gateway.",
        "agents.providers.compatible.CompatibleProvider",
    ),
)
_BY_NAME = {kind.kind: kind for kind in _KINDS}


def known_kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which forms show them."""
    return _KINDS


def kind_of(name: str) -> Kind:
    """Raises: LookupError for a kind that does not exist."""
    return _BY_NAME[name]


def connect(endpoint: Endpoint) -> Provider:
    """Return a provider for `endpoint`; an empty address means the kind's own.

    Nothing is sent yet. Raises: LookupError for an unknown kind.
    """
    kind = kind_of(endpoint.kind)
    module, _, name = kind.path.rpartition(".")
    maker = cast(Callable[[Endpoint], Provider], getattr(import_module(module), name))
    address = (endpoint.base_url or kind.default_base_url).rstrip("/")
    return maker(replace(endpoint, base_url=address, api_key=endpoint.api_key.strip()))

"""Which model an agent thinks with, decided in one place (`choose`), and what a connection leads to."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured

from agents.agentable import agentable_of
from agents.models import ModelConnection, UserAgent
from agents.providers.base import Endpoint, Patience, Routing
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import kind_of
from agents.providers.known_models import known
from agents.routing import routing_of
from memory.models import Thread
from memory.secrets import unseal


class Use(StrEnum):
    """What a model is wanted for. `ASIDE` is what is read and written beside conversations: summaries, titles."""

    AGENT = "agent"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Choice:
    """`name` is for people."""

    endpoint: Endpoint
    model: str
    capabilities: Capabilities = field(default=Capabilities())
    name: str = ""

    @property
    def lacks_tools(self) -> bool:
        """Whether it is known that no agent can work with it."""
        return self.capabilities.tools is False

    @property
    def can_see(self) -> bool | None:
        """Whether the model sees pictures; None when nobody knows."""
        return self.capabilities.images


@dataclass(frozen=True, slots=True)
class Chosen:
    """What may answer: the connection of the agent alone, and those that its user has chosen for the rest."""

    own: ModelConnection | None = None
    default: ModelConnection | None = None
    summariser: ModelConnection | None = None


def choose(chosen: Chosen, *, staff: bool, use: Use = Use.AGENT) -> Choice:
    """The agent's own connection, else its user's for this use, else its user's default, else the server's model, else
    the demo.

    staff: whether the user is.
    """
    for_use = chosen.summariser if use is Use.ASIDE else None
    connection = chosen.own or for_use or chosen.default
    return choice_of(connection, staff=staff) if connection else server_choice()


def default_connection(user_id: int) -> ModelConnection | None:
    return ModelConnection.objects.filter(user_id=user_id, is_default=True).first()


def key_of(connection: ModelConnection) -> str | None:
    """The key that is stored with a connection; None when it cannot be read."""
    try:
        return unseal(connection.sealed_key)
    except ImproperlyConfigured:
        return None


def key_for(user: User, kind: str, address: str) -> str:
    """The key that is stored for an address, the one of the default before others; empty when there is none. It may go
    there again without having been typed again, and nowhere else."""
    stored = ModelConnection.objects.for_user(user).filter(kind=kind).exclude(sealed_key="").order_by("-is_default")
    return next((key for each in stored if each.address == address and (key := key_of(each))), "")


def choice_of(connection: ModelConnection, *, staff: bool) -> Choice:
    """What a connection leads to, whose user is one of the `staff` or not."""
    key, can = unseal(connection.sealed_key), window_set(connection.kind, connection.capabilities)
    can = can if staff else _as_lent(connection, can)
    endpoint = endpoint_of(
        connection.kind,
        connection.base_url,
        key,
        staff=staff,
        routing=routing_of(connection.routing),
        window=can.context_length,
        thinking=can.thinking,
    )
    return Choice(endpoint, connection.model, can, str(connection))


def server_choice() -> Choice:
    """What those use who have set up nothing: the server named in the environment, or the demonstration."""
    model = settings.WAYMARK_MODEL
    if settings.OPENAI_BASE_URL:
        endpoint = endpoint_of("compatible", settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, staff=True)
        return Choice(endpoint, model, name=model)
    if settings.OPENAI_API_KEY:
        can = known("openai", model)
        endpoint = endpoint_of("openai", "", settings.OPENAI_API_KEY, staff=True, thinking=can.thinking)
        return Choice(endpoint, model, can, model)
    return Choice(Endpoint("demo"), "demo", Capabilities(images=False), kind_of("demo").label)


def window_set(kind_name: str, can: Capabilities) -> Capabilities:
    """The same, with the context that is asked for where nothing says how long it is to be."""
    if not kind_of(kind_name).has_window:
        return can
    return can.over(Capabilities(context_length=settings.WAYMARK_OLLAMA_CONTEXT))


def _as_lent(connection: ModelConnection, can: Capabilities) -> Capabilities:
    """The same, but where the server is that of this house, with no more context than it said itself or is asked for
    anyway: it takes memory for all of it (threat T16)."""
    kind = kind_of(connection.kind)
    if not kind.has_window or connection.address != kind.default_base_url or can.context_length is None:
        return can
    said = Capabilities.read(connection.learned).context_length or 0
    return replace(can, context_length=min(can.context_length, max(said, settings.WAYMARK_OLLAMA_CONTEXT)))


def endpoint_of(
    kind_name: str,
    base_url: str,
    api_key: str,
    *,
    staff: bool,
    routing: Routing | None = None,
    window: int | None = None,
    thinking: bool | None = None,
) -> Endpoint:
    """Where those who are `staff` or not are sent by an address, with what this server allows there.

    The address that a kind offers by itself is open to all, wherever it is. `window` is for kinds that let their
    clients choose it, and this server's own choice when it is not known. Of a model that is known to be `thinking`, a
    longer silence is normal, unless the kind never falls silent.
    """
    kind = kind_of(kind_name)
    is_slow = kind.may_be_silent(thinking=thinking)
    idle = settings.WAYMARK_SLOW_MODEL_IDLE_SECONDS if is_slow else settings.WAYMARK_MODEL_IDLE_SECONDS
    return Endpoint(
        kind_name,
        base_url,
        api_key,
        Patience(idle, settings.WAYMARK_MODEL_SILENT_SECONDS),
        anywhere=staff or base_url in ("", kind.default_base_url),
        answer_length=settings.WAYMARK_ANSWER_LENGTH,
        routing=routing or Routing(),
        window=(window or settings.WAYMARK_OLLAMA_CONTEXT) if kind.has_window else 0,
        keep_seconds=settings.WAYMARK_OLLAMA_KEEP_SECONDS,
    )


def choice_for(thread: Thread, use: Use = Use.ASIDE) -> Choice:
    """The model that works beside the runs of a thread: for summaries and the like."""
    agent = UserAgent.objects.select_related("summariser").filter(user=thread.user_id).first()
    chosen = Chosen(
        own=_own(agentable_of(thread).connection_id()),
        default=default_connection(thread.user_id),
        summariser=agent.summariser if agent else None,
    )
    return choose(chosen, staff=thread.user.is_staff, use=use)


def is_demo(choice: Choice) -> bool:
    """Whether this is the demonstration, which can neither read nor sum up."""
    return choice.endpoint.kind == "demo"


def uses_demo(user: User) -> bool:
    """Whether a new message of this user would be answered by the demonstration."""
    connection = default_connection(user.pk)
    return (connection.kind if connection else server_choice().endpoint.kind) == "demo"


def _own(connection_id: UUID | None) -> ModelConnection | None:
    return ModelConnection.objects.filter(pk=connection_id).first() if connection_id else None

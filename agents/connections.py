"""Which model an agent thinks with, decided in one place, and the connections that users set up."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from agents.agentable import Agentable, agentable_of
from agents.models import ModelConnection
from agents.providers.base import Endpoint, Patience
from agents.providers.catalog import kind_of
from agents.secrets import seal, unseal
from memory.models import Thread


@dataclass(frozen=True, slots=True)
class Choice:
    """can_see: whether the model can see pictures; None when nobody knows."""

    endpoint: Endpoint
    model: str
    can_see: bool | None = None


def choose(agentable: Agentable, default: ModelConnection | None, *, staff: bool) -> Choice:
    """The agent's own connection, else its user's default, else the server's model, else the demo.

    staff: whether the user is.
    """
    connection = agentable.connection() or default
    return choice_of(connection, staff=staff) if connection else server_choice()


def default_connection(user_id: int) -> ModelConnection | None:
    return ModelConnection.objects.filter(user_id=user_id, is_default=True).first()


def choice_of(connection: ModelConnection, *, staff: bool) -> Choice:
    """What a connection leads to, whose user is one of the `staff` or not."""
    key = unseal(connection.sealed_key)
    return Choice(endpoint_of(connection.kind, connection.base_url, key, staff=staff), connection.model)


def server_choice() -> Choice:
    """What those use who have set up nothing: the server named in the environment, or the demonstration."""
    if settings.OPENAI_BASE_URL:
        return Choice(
            endpoint_of("compatible", settings.OPENAI_BASE_URL, settings.OPENAI_API_KEY, staff=True),
            settings.WAYMARK_MODEL,
        )
    if settings.OPENAI_API_KEY:
        return Choice(endpoint_of("openai", "", settings.OPENAI_API_KEY, staff=True), settings.WAYMARK_MODEL)
    return Choice(Endpoint("demo"), "demo", can_see=False)


def endpoint_of(kind_name: str, base_url: str, api_key: str, *, staff: bool) -> Endpoint:
    """Where those who are `staff` or not are sent by an address, with what this server allows there.

    The address that a kind offers by itself is open to all, wherever it is.
    """
    kind = kind_of(kind_name)
    anywhere = staff or base_url in ("", kind.default_base_url)
    idle = settings.WAYMARK_SLOW_MODEL_IDLE_SECONDS if kind.is_slow else settings.WAYMARK_MODEL_IDLE_SECONDS
    patience = Patience(idle, settings.WAYMARK_MODEL_SILENT_SECONDS)
    return Endpoint(kind_name, base_url, api_key, patience, anywhere, settings.WAYMARK_ANSWER_LENGTH)


def choice_for(thread: Thread) -> Choice:
    """The model that works beside the runs of a thread: for summaries and the like."""
    return choose(agentable_of(thread), default_connection(thread.user_id), staff=thread.user.is_staff)


def is_demo(choice: Choice) -> bool:
    """Whether this is the demonstration, which can neither read nor sum up."""
    return choice.endpoint.kind == "demo"


def uses_demo(user: User) -> bool:
    """Whether a new message of this user would be answered by the demonstration."""
    connection = default_connection(user.pk)
    return (connection.kind if connection else server_choice().endpoint.kind) == "demo"


def connect_model(user: User, kind: str, model: str, base_url: str = "", api_key: str = "") -> ModelConnection:
    """Save a connection and make it the user's default."""
    with transaction.atomic():
        connection = ModelConnection.objects.create(
            user=user,
            kind=kind,
            base_url=base_url,
            sealed_key=seal(api_key),
            key_hint=api_key[-4:] if len(api_key) >= 12 else "",
            model=model,
        )
        make_default(connection)
    return connection


def make_default(connection: ModelConnection) -> None:
    with transaction.atomic():
        ModelConnection.objects.filter(user=connection.user, is_default=True).update(is_default=False)
        connection.is_default = True
        connection.save(update_fields=["is_default"])


def remove_connection(connection: ModelConnection) -> None:
    """Forget a connection and its key; the newest of the others becomes the default."""
    with transaction.atomic():
        user_id, was_default = connection.user_id, connection.is_default
        connection.delete()
        following = ModelConnection.objects.filter(user_id=user_id).order_by("-created_at").first()
        if was_default and following is not None:
            make_default(following)

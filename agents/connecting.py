"""Every write to connections and to the choice among them that a face may ask for."""

from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agents.connections import key_of
from agents.engine.waits import end_waits_for_budgets
from agents.models import ModelConnection, UserAgent
from agents.providers.base import Routing, Verdict
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import kind_of
from agents.refusals import Refused
from agents.routing import stored
from memory.secrets import seal
from memory.text import clip

LONGEST_VERDICT = 500
MOST_CONNECTIONS = 50
# A key is named by its last characters only when that leaves enough of it secret.
SHORTEST_HINTED = 12


@dataclass(frozen=True, slots=True)
class Given:
    """What a user says of a connection.

    api_key: empty keeps the one that is stored.
    corrections: what is said instead of what the server and the table say.
    """

    model: str
    base_url: str = ""
    api_key: str = ""
    name: str = ""
    routing: Routing = field(default=Routing())
    corrections: Capabilities = field(default=Capabilities())


def connect_model(
    user: User,
    kind: str,
    given: Given,
    learned: Capabilities | None = None,
    *,
    default: bool = True,
) -> ModelConnection:
    """Save a connection; as `default` it becomes the one that is used for everything. One that leads to the same model
    with the same key is the same, and keeps its name, and what it was told unless that is said anew.

    Args:
        learned: what the server has said of the model.

    Raises:
        Refused: it is to be the default, and its model lacks tools; or there are too many.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        connection = _same(user, kind, given)
        if connection is None:
            if ModelConnection.objects.for_user(user).count() >= MOST_CONNECTIONS:
                raise Refused("too_many_connections", "You have as many connections as one may. Remove one first.")
            connection = ModelConnection(user=user, kind=kind)
            _fill(connection, given)
        elif corrections := given.corrections.stored():
            connection.corrections = corrections
        connection.learned = (learned or Capabilities()).over(Capabilities.read(connection.learned)).stored()
        if default:
            must_have_tools(connection)
        connection.save()
        if default:
            make_default(connection)
    return connection


def change_connection(connection: ModelConnection, given: Given, learned: Capabilities | None = None) -> None:
    """Change what a connection is. With another address or model, what was learned and tested is of something else.

    Args:
        learned: as in `connect_model`; where it says nothing, what is known holds, unless it is of something else.

    Raises:
        Refused: the address changes and the key would go along without having been typed again; or it is in use where
            tools are needed, and lacks them now.
    """
    moves = connection.address != (given.base_url or kind_of(connection.kind).default_base_url)
    if moves and connection.sealed_key and not given.api_key:
        raise Refused("key_needed", "With another address the key must be given again.")
    if moves or connection.model != given.model:
        connection.learned, connection.works, connection.verdict, connection.tested_at = {}, None, "", None
    if learned is not None:
        connection.learned = learned.over(Capabilities.read(connection.learned)).stored()
    _fill(connection, given)
    if connection.is_default or _stands_in(connection):
        must_have_tools(connection)
    connection.save()


def note_test(connection: ModelConnection, verdict: Verdict, learned: Capabilities) -> None:
    """Keep what a test has shown. That a model has used a tool, or that its server refused one, outweighs what is said
    of it; where a server says nothing this time, what it said before holds."""
    shown = Capabilities(tools=verdict.tools)
    facts = shown.over(learned).over(Capabilities.read(connection.learned))
    ModelConnection.objects.filter(pk=connection.pk, model=connection.model, base_url=connection.base_url).update(
        learned=facts.stored(),
        works=verdict.ok,
        verdict=clip(verdict.message, LONGEST_VERDICT),
        tested_at=timezone.now(),
    )


def make_default(connection: ModelConnection) -> None:
    """Use a connection for everything that has no choice of its own.

    Raises:
        Refused: its model lacks tools.
    """
    must_have_tools(connection)
    with transaction.atomic():
        ModelConnection.objects.filter(user=connection.user, is_default=True).update(is_default=False)
        connection.is_default = True
        connection.save(update_fields=["is_default"])
    end_waits_for_budgets(connection.user)


def remove_connection(connection: ModelConnection) -> None:
    """Forget a connection and its key; the newest of the others that has tools becomes the default."""
    with transaction.atomic():
        user_id, was_default = connection.user_id, connection.is_default
        connection.delete()
        others = ModelConnection.objects.filter(user_id=user_id).order_by("-created_at")
        following = next((other for other in others if not other.lacks_tools), None)
        if was_default and following is not None:
            make_default(following)


def choose_for_uses(
    agent: UserAgent,
    *,
    summariser: ModelConnection | None,
    stand_in: ModelConnection | None,
    default: ModelConnection | None = None,
) -> None:
    """Set who writes summaries and titles, and who answers when another model is out of reach; None goes back to the
    default, and to nobody.

    Args:
        default: is used for everything else from now on; None changes nothing.

    Raises:
        Refused: a model that is not for summaries lacks tools.
    """
    for connection in filter(None, (default, stand_in)):
        must_have_tools(connection)
    with transaction.atomic():
        agent.summariser, agent.stand_in = summariser, stand_in
        agent.save(update_fields=["summariser", "stand_in"])
        if default is not None:
            make_default(default)


def must_have_tools(connection: ModelConnection) -> None:
    """Raises: Refused when it is known that no agent can work with the connection."""
    if connection.lacks_tools:
        raise Refused("no_tools", f"{connection} cannot use tools, which agents need. It can still write summaries.")


def _same(user: User, kind: str, given: Given) -> ModelConnection | None:
    """The connection that leads to the same with the same key."""
    alike = ModelConnection.objects.for_user(user).filter(kind=kind, model=given.model)
    address = given.base_url or kind_of(kind).default_base_url
    return next((each for each in alike if each.address == address and key_of(each) == given.api_key), None)


def _stands_in(connection: ModelConnection) -> bool:
    return UserAgent.objects.filter(stand_in=connection).exists()


def _fill(connection: ModelConnection, given: Given) -> None:
    connection.name, connection.base_url, connection.model = given.name, given.base_url, given.model
    connection.routing, connection.corrections = stored(given.routing), given.corrections.stored()
    if given.api_key:
        connection.sealed_key = seal(given.api_key)
        connection.key_hint = given.api_key[-4:] if len(given.api_key) >= SHORTEST_HINTED else ""

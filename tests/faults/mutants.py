"""F18: the engine with one of its safeguards taken out, to see that the oracle notices. Tests only."""

from collections.abc import Callable
from importlib import import_module

from django.conf import settings

from agents.engine import leases
from agents.engine.journal import LeaseLost, end, fragments, steps
from agents.engine.leases import Held

claim = import_module("agents.engine.journal.claim")  # its package has a function of the same name

MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(function: Callable[[], None]) -> Callable[[], None]:
    MUTANTS[function.__name__] = function
    return function


@mutant
def no_fence() -> None:
    """Every write of a run is accepted, whoever holds its lease. What stands before and mostly comes first, the
    self-fence and a renewal that is refused, is out of the way: the fence is for the moment between the last look at
    either and the write."""
    no_self_fence()
    Held.lose = lambda self: None  # type: ignore[method-assign]
    statements = ((steps, "REPLY"), (steps, "OUTCOME"), (steps, "CALL_AGAIN"), (end, "FINAL"), (claim, "TAKE"))
    for module, name in statements:
        sql = getattr(module, name)
        assert fragments.FENCE in sql or "run.lease_token = %(token)s" in sql
        loose = sql.replace(fragments.FENCE, "run.id = %(run)s").replace("AND run.lease_token = %(token)s", "")
        setattr(module, name, loose)


@mutant
def impatient() -> None:
    """Nothing is taken out, but a model that hangs is given up in seconds instead of minutes."""
    settings.WAYMARK_MODEL_IDLE_SECONDS = settings.WAYMARK_MODEL_SILENT_SECONDS = 1.5


@mutant
def no_self_fence() -> None:
    """A worker believes in its lease until PostgreSQL says otherwise."""
    leases.Leases.fence_off = lambda self: None  # type: ignore[method-assign]

    def check(self: Held) -> None:
        if self.lost:
            raise LeaseLost
        self.cancel.check()

    Held.check = check  # type: ignore[method-assign]


@mutant
def no_start() -> None:
    """D5 is missing: calls run without a record that they have started."""
    sql = steps.REPLY
    assert "arguments jsonb, status text))" in sql
    steps.REPLY = sql.replace("arguments jsonb, status text))", "arguments jsonb, status text) WHERE false)")

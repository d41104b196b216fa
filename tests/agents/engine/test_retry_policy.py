"""The policy of retries, for whatever a provider may report."""

from hypothesis import given, strategies as st

from agents.engine.retries import Later, Never, Now, RetryPolicy
from agents.providers.base import ProviderError, Trouble

POLICY = RetryPolicy()


def error(
    trouble: Trouble = Trouble.OVERLOADED, asked: float | None = None, *, retryable: bool = True
) -> ProviderError:
    return ProviderError(trouble, "no", retryable=retryable, retry_after=asked)


def test_the_figures_are_the_missions() -> None:
    assert POLICY.after(error(), 0, 0, 0) == POLICY.after(error(), 1, 0, 0) == Now(1.5)
    assert [POLICY.after(error(), 2, waited, 0) for waited in range(3)] == [
        Later(10, 1, 2),
        Later(20, 2, 2),
        Never(attempts=2),
    ]
    assert POLICY.after(error(Trouble.RATE_LIMITED), 2, 4, 0) == Later(160, 5, 5)
    assert POLICY.after(error(Trouble.TIMEOUT), 2, 3, 0) == Never(attempts=3)
    assert POLICY.after(error(asked=900), 0, 0, 1) == Later(900, 1, 2)
    assert POLICY.after(error(asked=901), 0, 0, 0) == Never(asked=901)
    assert POLICY.after(error(retryable=False), 0, 0, 0) == Never()


@given(
    st.sampled_from(Trouble),
    st.none() | st.floats(0.001, 1e6),
    st.integers(0, 4),
    st.integers(0, 9),
    st.floats(0, 1),
)
def test_nothing_is_early_and_nothing_goes_on_for_ever(
    trouble: Trouble, asked: float | None, held: int, waited: int, chance: float
) -> None:
    match POLICY.after(error(trouble, asked), held, waited, chance):
        case Now(seconds=seconds):
            assert not waited
            assert held < POLICY.held_tries
            assert (asked or POLICY.held_seconds) <= seconds <= POLICY.held_longest
        case Later(seconds=seconds, attempt=attempt, of=of):
            assert seconds >= max(asked or 0, POLICY.first_seconds * 2**waited)
            assert seconds <= POLICY.longest_seconds
            assert attempt == waited + 1 <= of <= POLICY.rate_limit_tries
        case Never(attempts=attempts, asked=long):
            assert attempts or long or waited

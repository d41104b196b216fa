"""What is measured. A turn is two tool calls, in two replies, and an answer of 60 tokens: three calls of the model."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Scenario:
    """
    turns: per round and side. at_once: how many are under way at any time.
    first_token, gap: the model's, in seconds.
    """

    name: str
    rounds: int
    turns: int
    at_once: int
    first_token: float = 0
    gap: float = 0

    @property
    def ideal_seconds(self) -> float:
        """What the slowest turn takes when only the model takes time; no answer of these scenarios has gaps."""
        return 3 * self.first_token


SCENARIOS = (
    Scenario("overhead", rounds=5, turns=40, at_once=1),
    Scenario("throughput", rounds=5, turns=160, at_once=16),
    Scenario("concurrency", rounds=3, turns=200, at_once=200, first_token=1),
    Scenario("stream", rounds=5, turns=6, at_once=1, gap=0.01),
)
WARM_UP = Scenario("warm-up", rounds=1, turns=48, at_once=16)


def tiny(scenario: Scenario) -> Scenario:
    """The same with just enough turns to see that everything works."""
    turns = min(scenario.turns, 2 if scenario.at_once == 1 else 12)
    at_once, first_token = min(scenario.at_once, turns), min(scenario.first_token, 0.2)
    return replace(scenario, rounds=1, turns=turns, at_once=at_once, first_token=first_token)

"""What `bin/up` prints: one aligned line a step, then where to go."""

import time

WIDTH = 34


class Console:
    """Measures each step from the one before."""

    def __init__(self) -> None:
        self._began = self._step = time.monotonic()

    def step(self, text: str) -> None:
        """A step is done; print it with the seconds it took."""
        now = time.monotonic()
        print(f"  {text:<{WIDTH}}{now - self._step:5.1f} s", flush=True)
        self._step = now

    def say(self, text: str) -> None:
        """A line without a time; resets the clock of the next step."""
        print(f"  {text}" if text else "", flush=True)
        self._step = time.monotonic()

    def ready(self, facts: dict[str, str]) -> None:
        """The last block of a start: names and values in two columns."""
        print(f"\n  {'Waymark is ready':<{WIDTH}}{time.monotonic() - self._began:5.1f} s\n")
        for name, value in facts.items():
            print(f"    {name:<11}{value}")
        print(flush=True)

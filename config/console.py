"""What `bin/up` prints: one aligned line a step, then where to go; later what happens, with its time."""

import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

WIDTH = 34


class Console:
    """Measures each step from the one before. Nothing fails because it cannot be written: the disk may be full, or the
    terminal gone.

    log: where what happens is kept, too; None until the data folder is known.
    """

    def __init__(self) -> None:
        self.log: Path | None = None
        self._began = self._step = time.monotonic()

    def step(self, text: str) -> None:
        """A step is done; print it with the seconds it took."""
        now = time.monotonic()
        _print(f"  {text:<{WIDTH}}{now - self._step:5.1f} s")
        self._step = now

    def say(self, text: str) -> None:
        """What happens to Waymark, printed and kept with its time (UTC)."""
        _print(f"  {self._keep(text)}")

    def ready(self, facts: dict[str, str]) -> None:
        """The last block of a start: names and values in two columns."""
        _print(f"\n  {'Waymark is ready':<{WIDTH}}{time.monotonic() - self._began:5.1f} s\n")
        for name, value in facts.items():
            _print(f"    {name:<11}{value}")
        _print("")
        self._keep("Waymark is ready")

    def _keep(self, text: str) -> str:
        line = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}  {text}"
        if self.log is not None:
            with suppress(OSError), self.log.open("a") as file:
                file.write(f"{line}\n")
        return line


def _print(text: str) -> None:
    with suppress(OSError):
        print(text, flush=True)

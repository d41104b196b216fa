"""The samples of `bench.sampler` as a list of what costs most."""

import json
from collections import Counter
from pathlib import Path

SHOWN = 60


def summary(folder: Path, turns: int) -> str:
    """Milliseconds of CPU per turn by function: with what it called, and alone."""
    return "\n".join(_summary(file, turns) for file in sorted(folder.glob("*.json")))


def _summary(file: Path, turns: int) -> str:
    inclusive: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    stacks: dict[str, int] = json.loads(file.read_text())
    for stack, spent in stacks.items():
        names = stack.split(";")
        alone[names[-1]] += spent
        for name in set(names):
            inclusive[name] += spent
    lines = [f"\n{file.stem}: {sum(stacks.values()) / 1000 / turns:.2f} ms per turn"]
    for title, counts in (("with what it called", inclusive), ("alone", alone)):
        lines.append(f"  {title}")
        lines += [f"  {spent / 1000 / turns:8.3f}  {name}" for name, spent in counts.most_common(SHOWN)]
    return "\n".join(lines)

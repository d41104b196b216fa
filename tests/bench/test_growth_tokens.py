"""What a conversation sends, with turns too few to be evidence."""

import pytest

from bench.growth_tokens import NEVER, run, table

pytestmark = [pytest.mark.programs, pytest.mark.trials]


@pytest.mark.parametrize("session_tokens", [NEVER, 2_000])
def test_a_short_conversation_is_counted_with_and_without_compaction(session_tokens: int) -> None:
    course = run(session_tokens, turns=3)
    assert len(course.prompts) == 3
    assert course.cached[0] == 0
    assert all(cached > 0 for cached in course.cached[1:])
    assert bool(course.summaries) == (session_tokens != NEVER)
    assert course.with_cache < course.total
    assert f"| {course.prompts[-1]:,} |" in table([course])

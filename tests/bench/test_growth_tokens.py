"""What a conversation sends, with turns too few to be evidence."""

import pytest

from bench.growth_tokens import run, table

pytestmark = pytest.mark.programs


def test_a_short_conversation_is_counted_with_its_summaries() -> None:
    course = run(2_000, turns=3)
    assert len(course.prompts) == 3
    assert course.cached[0] == 0
    assert all(cached > 0 for cached in course.cached[1:])
    assert course.summaries
    assert course.with_cache < course.total
    assert f"| {course.prompts[-1]:,} |" in table([course])

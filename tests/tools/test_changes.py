"""The rule by which what a call changed is compared with how things stand now."""

import pytest

from tools.changes import Change, Image, Verdict, compared

V1: Image = {"title": "Shoes", "body": "v1"}
V2: Image = {"title": "Shoes", "body": "v2"}


@pytest.mark.parametrize(
    ("before", "after", "now", "verdict", "target"),
    [
        pytest.param(None, V1, V1, Verdict.UNDO, None, id="created"),
        pytest.param(None, V1, V2, Verdict.CONFLICT, None, id="created, changed since"),
        pytest.param(None, V1, None, Verdict.BACK_ALREADY, None, id="created, gone already"),
        pytest.param(V1, None, None, Verdict.UNDO, V1, id="removed"),
        pytest.param(V1, None, V1, Verdict.BACK_ALREADY, None, id="removed, there again"),
        pytest.param(V1, None, V2, Verdict.CONFLICT, None, id="removed, another one there"),
        pytest.param({"body": "v1"}, {"body": "v2"}, V2, Verdict.UNDO, V1, id="changed"),
        pytest.param({"body": "v1"}, {"body": "v2"}, V1, Verdict.BACK_ALREADY, None, id="changed, back already"),
        pytest.param({"body": "v1"}, {"body": "v2"}, None, Verdict.CONFLICT, None, id="changed, gone since"),
        pytest.param({"body": "v1"}, {"body": "v2"}, V2 | {"body": "v3"}, Verdict.CONFLICT, None, id="changed twice"),
        pytest.param(V1, {"title": "Boots", "body": "v2"}, V2, Verdict.UNDO, V1, id="one of two is back already"),
    ],
)
def test_an_undo_loses_nothing(
    before: Image | None, after: Image | None, now: Image | None, verdict: Verdict, target: Image | None
) -> None:
    found = compared(Change(kind="note", id="1", name="Shoes", before=before, after=after), now)
    assert (found.verdict, found.target) == (verdict, target)

"""What a reflective companion keeps of a person, in the browser and over the API: nobody but them decides about it
(mission D11)."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from goals.models import Goal
from goals.services import delete_goal
from memory.models import Thread, ThreadMessage
from tests.factories import AgentRunFactory, GoalFactory, ThreadMessageFactory, bearer
from tools.models import AgentAction, Trust
from tools.part_models import Assessment, Part, Proposal, Record
from tools.parts import add_evidence, create_assessment, create_part, create_proposal

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "Something in me goes quiet & <b>hides</b> when he shouts."
QUOTE = "goes quiet & <b>hides</b>"


@pytest.fixture
def part(goal: Goal) -> Part:
    return kept(goal.thread)[0]


def kept(thread: Thread) -> tuple[Part, Assessment, Proposal]:
    """One of each."""
    ThreadMessageFactory(thread=thread, run=AgentRunFactory(thread=thread), content=SAID)
    part = create_part(thread, "Quiet one", "protector", {"fears": ["being seen"]}, [QUOTE])
    return part, create_assessment(thread, "Tense.", [QUOTE]), create_proposal(thread, "Breathe.")


def page(goal: Goal, way: str = "parts") -> str:
    return f"/goals/{goal.pk}/{way}/"


def shown_of(client: Client, record: Part | Proposal, user: User) -> str:
    path = f"/api/v1/{'parts' if isinstance(record, Part) else 'proposals'}/{record.pk}"
    return str(client.get(path, headers=bearer(user)).json()["shown"])


def test_the_page_shows_what_is_kept_with_the_words_that_it_rests_on(client: Client, goal: Goal) -> None:
    assert "Nothing kept yet" in client.get(page(goal)).text
    kept(goal.thread)
    shown = client.get(page(goal)).text
    for words in ("Quiet one", "protector", "being seen", "emerging", "Tense.", "Breathe."):
        assert words in shown
    assert "goes quiet &amp; &lt;b&gt;hides&lt;/b&gt;" in shown
    assert "<b>hides" not in shown


def test_a_person_confirms_what_they_have_seen_and_nothing_else(client: Client, goal: Goal, part: Part) -> None:
    seen = shown_of(client, part, goal.user)
    Part.objects.update(role="exile")
    late = client.post(page(goal, f"parts/{part.pk}/confirm"), {"shown": seen})
    assert (late.status_code, "It was changed since you looked at it." in late.text) == (422, True)
    part.refresh_from_db()
    assert part.status == "emerging"
    Part.objects.update(role="protector")
    answer = client.post(page(goal, f"parts/{part.pk}/confirm"), {"shown": seen}, follow=True)
    assert "“Quiet one” is confirmed." in answer.text
    part.refresh_from_db()
    assert part.status == "confirmed"
    deed = AgentAction.objects.get()
    assert (deed.run, deed.tool, deed.user) == (None, "confirm_part", goal.user)
    assert "The user has confirmed a part of theirs: Quiet one" in Thread.objects.get(pk=goal.thread_id).news
    assert client.post(page(goal, f"parts/{part.pk}/confirm"), {"shown": seen}).status_code == 422
    client.post(f"/actions/{deed.pk}/undo", {"next": page(goal)})
    part.refresh_from_db()
    assert part.status == "emerging"


@pytest.mark.parametrize("kind", ["part", "assessment", "proposal"])
def test_what_a_person_deletes_is_on_record_and_comes_back_as_it_was(client: Client, goal: Goal, kind: str) -> None:
    record: Record = next(each for each in kept(goal.thread) if each._meta.model_name == kind)
    before = everything(record)
    answer = client.post(page(goal, f"kept/{kind}/{record.pk}/delete"), follow=True)
    assert "is deleted." in answer.text
    assert everything(record) == []
    assert f"Deleted a{'n' if kind == 'assessment' else ''} {kind}" in client.get("/activity/").text
    deed = AgentAction.objects.get()
    assert f"/actions/{deed.pk}/undo" in answer.text
    client.post(f"/actions/{deed.pk}/undo", {"next": page(goal)})
    assert everything(record) == before
    assert client.post(page(goal, f"kept/goal/{record.pk}/delete")).status_code == 404


def everything(record: Record) -> list[Any]:
    names = [field.name for field in record._meta.fields if field.name != "updated_at"]
    return list(type(record)._default_manager.filter(pk=record.pk).values(*names))


@pytest.mark.parametrize(("decision", "state"), [("accept", "accepted"), ("decline", "declined")])
def test_a_person_decides_about_a_proposal_once(client: Client, goal: Goal, decision: str, state: str) -> None:
    proposal = kept(goal.thread)[2]
    address = page(goal, f"proposals/{proposal.pk}/{decision}")
    assert client.post(address, {"shown": "of something else"}).status_code == 422
    seen = shown_of(client, proposal, goal.user)
    answer = client.post(address, {"shown": seen})
    assert (answer.status_code, "Accepted" in client.get(answer["Location"]).text) == (302, decision == "accept")
    proposal.refresh_from_db()
    assert proposal.state == state
    assert client.post(address, {"shown": seen}).status_code == 422
    assert client.post(page(goal, f"proposals/{proposal.pk}/finish"), {"shown": seen}).status_code == 404
    assert f"The user has {state} your proposal: Breathe." in Thread.objects.get(pk=goal.thread_id).news


def test_a_person_does_the_same_over_the_api(goal: Goal) -> None:
    part, assessment, proposal = kept(goal.thread)
    browser, headers = Client(), bearer(goal.user)

    def post(path: str, **body: str) -> Any:
        return browser.post(f"/api/v1/{path}", body, content_type="application/json", headers=headers)

    listed = browser.get(f"/api/v1/goals/{goal.pk}/parts", headers=headers).json()["results"]
    assert [(each["status"], each["evidence"][0]["quote"]) for each in listed] == [("emerging", QUOTE)]
    assert post(f"parts/{part.pk}/confirm", shown="x").status_code == 400
    assert post(f"parts/{part.pk}/confirm", shown=listed[0]["shown"]).json()["tool"] == "confirm_part"
    assert browser.get(f"/api/v1/parts/{part.pk}", headers=headers).json()["status"] == "confirmed"
    (one,) = browser.get(f"/api/v1/goals/{goal.pk}/proposals", headers=headers).json()["results"]
    done = post(f"proposals/{proposal.pk}/decide", decision="accept", shown=one["shown"])
    assert done.json()["tool"] == "accept_proposal"
    gone = browser.delete(f"/api/v1/assessments/{assessment.pk}", headers=headers).json()
    assert not Assessment.objects.exists()
    assert post(f"actions/{gone['id']}/undo").status_code == 200
    assert Assessment.objects.exists()


def test_nobody_reads_or_decides_about_what_is_kept_of_another(client: Client, goal: Goal) -> None:
    theirs: Goal = GoalFactory.create()
    part, assessment, proposal = kept(theirs.thread)
    seen = {"shown": shown_of(client, part, theirs.user)}
    assert client.get(page(theirs)).status_code == 404
    for of in (goal, theirs):
        for way in (f"parts/{part.pk}/confirm", f"proposals/{proposal.pk}/accept", f"kept/part/{part.pk}/delete"):
            assert client.post(page(of, way), seen).status_code == 404
        assert client.post(page(of, f"kept/assessment/{assessment.pk}/delete")).status_code == 404
    assert client.post(page(theirs, "settings"), {"title": "x", "packs": "reflective"}).status_code == 404
    assert "Quiet one" not in client.get(page(goal)).text
    part.refresh_from_db()
    assert (part.status, Proposal.objects.get().state, AgentAction.objects.exists()) == ("emerging", "open", False)
    theirs.refresh_from_db()
    assert theirs.packs == []


def save(client: Client, goal: Goal, **given: str) -> str:
    """Save the page of a goal's settings; it is shown again."""
    return client.post(page(goal, "settings"), {"title": goal.title} | given, follow=True).text


def test_the_pack_is_switched_on_for_one_goal_and_off_again(client: Client, goal: Goal) -> None:
    settings = page(goal, "settings")
    assert 'name="mode-create_emerging_part"' not in client.get(settings).text
    assert page(goal) not in client.get(f"/goals/{goal.pk}/").text
    save(client, goal, packs="reflective")
    goal.refresh_from_db()
    assert goal.packs == ["reflective"]
    shown = client.get(settings).text
    assert 'name="mode-create_emerging_part" value="auto" checked' in shown
    assert "confirm_part" not in shown
    assert page(goal) in client.get(f"/goals/{goal.pk}/").text
    save(client, goal, **{"mode-create_emerging_part": "ask"})
    save(client, goal, **{"mode-create_note": "ask"})
    assert "cannot be set to" in save(client, goal, **{"mode-create_emerging_part": "auto"})
    goal.refresh_from_db()
    assert goal.packs == []
    assert goal.modes == {"create_note": "ask", "create_emerging_part": "ask"}, "what was chosen is kept"
    assert "There is no pack" in save(client, goal, packs="x")


def test_what_was_allowed_without_asking_ends_when_the_pack_is_switched_off(client: Client, goal: Goal) -> None:
    save(client, goal, packs="reflective")
    until = timezone.now() + timedelta(days=1)
    for tool in ("create_proposal", "create_note"):
        Trust.objects.create(user=goal.user, thread=goal.thread, tool=tool, until=until)
    save(client, goal, packs="reflective")
    assert not Trust.objects.exclude(revoked_at=None).exists()
    save(client, goal)
    assert [trust.tool for trust in Trust.objects.exclude(revoked_at=None)] == ["create_proposal"]


def test_the_pack_is_switched_over_the_api(client: Client, goal: Goal) -> None:
    def patch(*packs: str) -> Any:
        body = {"packs": packs}
        headers = bearer(goal.user)
        return Client().patch(f"/api/v1/goals/{goal.pk}", body, content_type="application/json", headers=headers)

    assert patch("reflective").json()["packs"] == ["reflective"]
    assert patch("everything").json()["error"]["code"] == "invalid_pack"
    assert patch().json()["packs"] == []


def test_whoever_vouches_for_what_was_read_takes_the_mark_off_what_was_kept(client: Client, goal: Goal) -> None:
    part = kept(goal.thread)[0]
    Part.objects.update(sources=["stranger.example"])
    assert "Its writer had read what others wrote: stranger.example" in client.get(page(goal)).text
    client.post(page(goal, "vouch"))
    part.refresh_from_db()
    assert part.sources == []


def test_what_is_kept_goes_with_its_goal(goal: Goal) -> None:
    kept(goal.thread)
    delete_goal(goal)
    assert not Part.objects.exists()
    assert not Assessment.objects.exists()
    assert not Proposal.objects.exists()


def test_what_was_done_is_said_once_more_by_a_reload_and_no_more_once_it_was_taken_back(
    client: Client, goal: Goal, part: Part
) -> None:
    there = client.post(page(goal, f"kept/part/{part.pk}/delete"))["Location"]
    for _reload in range(2):
        assert "is deleted." in client.get(there).text
    other: Goal = GoalFactory.create(user=goal.user)
    deed = AgentAction.objects.get()
    assert "is deleted." not in client.get(f"{page(other)}?done={deed.pk}").text
    client.post(f"/actions/{deed.pk}/undo")
    assert "is deleted." not in client.get(there).text
    assert client.get(f"{page(goal)}?done=nothing").status_code == 200


def test_a_record_is_decided_about_where_it_belongs(client: Client, goal: Goal) -> None:
    other: Goal = GoalFactory.create(user=goal.user)
    part, assessment, proposal = kept(goal.thread)
    for record, way in (
        (part, f"parts/{part.pk}/confirm"),
        (proposal, f"proposals/{proposal.pk}/accept"),
        (part, f"kept/part/{part.pk}/delete"),
        (assessment, f"kept/proposal/{assessment.pk}/delete"),
    ):
        shown = shown_of(client, record, goal.user) if isinstance(record, Part | Proposal) else ""
        assert client.post(page(other, way), {"shown": shown}).status_code == 404
    assert not AgentAction.objects.exists()


def test_a_quote_is_shown_with_what_stands_around_it_and_where(client: Client, goal: Goal) -> None:
    """However long the message is, and however often it is quoted."""
    run = AgentRunFactory(thread=goal.thread)
    words = f"{'before ' * 9_000}When he frowns,\n  something in  me goes quiet. {'after ' * 9_000}"
    ThreadMessageFactory(thread=goal.thread, run=run, content=words)
    for number in range(25):
        create_part(goal.thread, f"Part {number}", "exile", {}, ["something in me goes quiet."])
    shown = client.get(page(goal)).text
    assert "before When he frowns,\n  <mark>something in  me goes quiet.</mark> after" in shown
    assert f'href="/jobs/{run.pk}/"' in shown
    assert len(shown) < 100_000
    ThreadMessage.objects.all().delete()
    assert "<mark>something in me goes quiet.</mark>" in client.get(page(goal)).text


def test_records_come_in_pages(client: Client, goal: Goal) -> None:
    ThreadMessageFactory(thread=goal.thread, run=AgentRunFactory(thread=goal.thread), content=SAID)
    for number in range(45):
        create_part(goal.thread, f"Part {number:02}", "exile", {}, [QUOTE])
        create_proposal(goal.thread, f"Try {number:02}.")
    seen: list[str] = []
    address: str | None = page(goal)
    while address:
        shown = client.get(address).text
        assert "Try 44." in shown, "the other kind stays where it was"
        here = dict.fromkeys(re.findall(r"Part \d\d", shown))
        assert len(here) <= 20
        seen += here
        older = re.findall(r'href="([^"]*[?&]part=\d+)">Older', shown)
        assert len(older) <= 1
        address = older[0].replace("&amp;", "&") if older else None
    assert seen == [f"Part {number:02}" for number in reversed(range(45))]
    assert client.get(f"{page(goal)}?part=x&proposal=99").status_code == 200
    third = client.get(f"{page(goal)}?part=3&done=x").text
    (delete,) = re.findall(rf'action="([^"]*/kept/part/{Part.objects.get(name="Part 01").pk}/delete/[^"]*)"', third)
    shown = client.post(delete, follow=True).text
    assert ("is deleted." in shown, "Part 02" in shown) == (True, True), "its person stays on the page"


def test_what_cannot_be_seen_is_named_where_a_person_decides(client: Client, goal: Goal) -> None:
    """Threat T17: else a line reads otherwise than it is."""
    ThreadMessageFactory(thread=goal.thread, run=AgentRunFactory(thread=goal.thread), content=SAID)
    create_proposal(goal.thread, "Quit\u200b your \u202ebj\u202c.")
    create_part(goal.thread, "Quiet\u2066", "ex\u200eile", {"fears": ["be\u00ading"]}, [QUOTE])
    shown = client.get(page(goal)).text
    for words in ("Quit[U+200B] your [U+202E]bj[U+202C].", "Quiet[U+2066]", "ex[U+200E]ile", "be[U+00AD]ing"):
        assert words in shown


def test_evidence_that_came_after_a_confirmation_is_named_as_such(client: Client, goal: Goal, part: Part) -> None:
    seen = shown_of(client, part, goal.user)
    client.post(page(goal, f"parts/{part.pk}/confirm"), {"shown": seen})
    assert "added since you confirmed it" not in client.get(page(goal)).text
    part.refresh_from_db()
    add_evidence(part, ["when he shouts."])
    part.save()
    shown = client.get(page(goal)).text
    assert shown.count("added since you confirmed it") == 1
    assert (part.status, shown_of(client, part, goal.user) == seen) == ("confirmed", False)

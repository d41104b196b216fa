"""What counts as evidence for a record about a person: whole words of theirs that say something, in any script (mission
D11)."""

import pytest
from pytest_django import DjangoAssertNumQueries

from goals.models import Goal
from memory.models import ThreadMessage
from tests.factories import AgentRunFactory, GoalFactory, ThreadMessageFactory
from tools.quotes import MOST_QUOTES, NotSaid, verified

pytestmark = pytest.mark.django_db


@pytest.fixture
def goal() -> Goal:
    goal: Goal = GoalFactory.create()
    return goal


def say(goal: Goal, text: str) -> ThreadMessage:
    run = AgentRunFactory(thread=goal.thread)
    message: ThreadMessage = ThreadMessageFactory(thread=goal.thread, run=run, content=text)
    return message


def is_evidence(goal: Goal, quote: str) -> bool:
    try:
        return bool(verified(goal.thread_id, [quote]))
    except NotSaid:
        return False


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("I don't love her at all", "t love her at all"),
        ("I don\u2019t love her at all", "t love her at all"),
        ("I don\u2019t love her at all", "\u2019t love her at all"),
        ("All this I don't", "All this I don"),
        ("the unhappy_person in me", "person in me"),
        ("my self-hate is all I have", "hate is all I have"),
        ("my self\u2011hate is all I have", "hate is all I have"),
        ("she is ab\u00adnormal to them all", "normal to them all"),
        ("he said that j'étais l'homme", "he said that j"),
        ("Tôi không mạnh mẽ như anh", "nh mẽ như anh"),
        ("मैं नहीं चाहता हूँ", "हीं चाहता हूँ"),
        ("मैं नहीं चाहता हूँ", "ीं चाहता हूँ"),
        ("मैं नहीं चाहता हूँ", "मैं नहीं चाहता ह"),
        ("क्षमा मुझे मत करो", "षमा मुझे मत करो"),
        ("cafe\u0301s are my refuge", "s are my refuge"),
        ("I hide in the cafe\u0301", "I hide in the cafe"),
        ("ฉันไม่รักเขาเลย", "ันไม่รักเขาเลย"),
        ("אני לא אוהב אותה בכלל", "והב אותה בכלל"),
    ],
)
def test_pieces_of_words_are_no_evidence(goal: Goal, said: str, quote: str) -> None:
    say(goal, said)
    assert is_evidence(goal, said)
    assert quote in said
    assert not is_evidence(goal, quote)


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("I don't love her at all", "don't love her"),
        ("It is over - I hate it all", "I hate it all"),
        ("It is over--I hate it all", "I hate it all"),
        ("'I hate it all', he said", "I hate it all"),
        ("_I hate it all_ (he said)", "I hate it all"),
        ("cafe\u0301s are my refuge", "cafe\u0301s are my"),
        ("मैं नहीं चाहता हूँ", "नहीं चाहता हूँ"),
        ("我觉得没有人爱我，一直如此", "没有人爱我，一直"),
        ("私はいつも一人です", "いつも一人です"),
        ("ฉันไม่รักเขาเลย", "ไม่รักเขา"),
        ("Verantwortungslosigkeit, sagt er.", "Verantwortungslosigkeit"),
    ],
)
def test_whole_words_are_evidence_in_any_script(goal: Goal, said: str, quote: str) -> None:
    say(goal, said)
    assert is_evidence(goal, quote)


@pytest.mark.parametrize("text", ["?", "ok", "k", "OK!", "yes", "--------", "1234567890123456", "😀" * 20, "嗯"])
def test_what_says_nothing_is_no_evidence_even_as_a_whole_message(goal: Goal, text: str) -> None:
    say(goal, text)
    assert not is_evidence(goal, text)


@pytest.mark.parametrize("quote", ["fine", "am fine", "--------", "really?!", "我不是"])
def test_a_passage_of_a_few_letters_is_no_evidence(goal: Goal, quote: str) -> None:
    say(goal, "So I am fine -------- really?! 我不是")
    assert not is_evidence(goal, quote)


@pytest.mark.parametrize("text", ["Alone", "I hide.", "孤独", "Больно"])
def test_a_short_answer_counts_as_a_whole(goal: Goal, text: str) -> None:
    say(goal, text)
    assert is_evidence(goal, text)
    assert not is_evidence(goal, text[:-2])


def test_each_quote_is_of_the_newest_message_that_has_it(goal: Goal) -> None:
    older, newer = say(goal, "I want to hide. I hate it all."), say(goal, "As I said, I want to hide.")
    found = verified(goal.thread_id, ["I hate it all.", "I want to hide.", "I hate it all."])
    assert [quote.message for quote in found] == [older.pk, newer.pk, older.pk]


def test_more_quotes_than_are_kept_are_not_looked_for(
    goal: Goal, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    say(goal, "I want to hide.")
    with django_assert_num_queries(0), pytest.raises(NotSaid, match="At most"):
        verified(goal.thread_id, ["I want to hide."] * (MOST_QUOTES + 1))


def test_messages_are_read_once_for_all_quotes_of_a_call(
    goal: Goal, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for place in range(MOST_QUOTES):
        say(goal, f"This is number {place} of them")
    with django_assert_num_queries(1):
        verified(goal.thread_id, [f"This is number {place}" for place in range(MOST_QUOTES)])

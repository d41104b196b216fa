"""What only Chat Completions servers do, over real HTTP."""

import time

import pytest

from agents.providers.base import (
    Endpoint,
    Finish,
    ModelRequest,
    Patience,
    ProviderError,
    Reply as Answered,
    Trouble,
    Usage,
)
from agents.providers.catalog import connect
from agents.providers.pool import lease
from memory.messages import Text, Thinking, user
from tests.agents.providers.conftest import KEY, Ask
from tests.llm_server import DONE, D, Drop, F, Hang, LLMServer, Raw, Reply, U, event
from tools.cancel import CancelToken


def test_thinking_has_two_names(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"reasoning": "Hm."}), D({"content": "No."}), F("stop"), DONE])])
    heard = ask()
    assert (heard.thinking, heard.message.blocks) == ("Hm.", (Thinking(text="Hm."), Text(text="No.")))


def test_a_refusal_is_text_and_says_that_it_is_one(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"refusal": "I cannot "}), D({"refusal": "do that."}), F("stop"), DONE])])
    server.script([Raw([D({"content": "Well"}), F("content_filter"), DONE])])
    heard = ask()
    assert (heard.text, heard.reply.finish) == ("I cannot do that.", Finish.REFUSED)
    assert ask().reply.finish is Finish.REFUSED


def test_content_may_be_a_list_of_parts(server: LLMServer, ask: Ask) -> None:
    parts = [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}]
    server.script([Raw([D({"content": parts}), F("stop"), DONE])])
    assert ask().text == "ok"


def test_an_answer_without_a_finish_is_not_whole(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": "Half an ans"})])])
    with pytest.raises(ProviderError, match="ended early"):
        ask()


def test_a_server_without_an_address_is_unreachable() -> None:
    provider = connect(Endpoint("compatible", "", KEY, anywhere=True))
    with pytest.raises(ProviderError) as caught:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert (caught.value.trouble, caught.value.retryable) == (Trouble.UNREACHABLE, False)


def test_the_tokens_of_an_answer_that_breaks_off_are_known(server: LLMServer, ask: Ask) -> None:
    server.script([Drop([D({"content": "x"}), U(7, 59), U(7, 60)])])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.usage == Usage(7, 60, None)


def test_an_answer_with_a_finish_but_without_the_end_mark_is_whole(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": "done"}), F("stop")]), Drop([D({"content": "done"}), F("stop")])])
    assert ask().text == "done"
    assert ask().text == "done"


def test_running_totals_are_not_added_up(server: LLMServer, ask: Ask) -> None:
    totals = [U(7, number) for number in range(1, 101)]
    server.script([Raw([D({"content": "x"}), *totals, F("stop"), DONE])])
    assert ask().reply.usage == Usage(7, 100, None)


def test_an_answer_is_over_with_its_end_mark_though_the_server_goes_on(server: LLMServer, ask: Ask) -> None:
    server.script([Hang(30, [D({"content": "done"}), F("stop"), DONE]), Reply("next")])
    started = time.monotonic()
    assert ask().text == "done"
    assert time.monotonic() - started < 10
    assert ask().text == "next"


@pytest.mark.parametrize("end", [(), (U(7, 2),), (DONE,)], ids=["no_end", "counted", "end_mark"])
def test_a_whole_answer_is_not_thrown_away_because_the_server_goes_on_giving_signs_of_life(
    server: LLMServer, end: tuple[bytes, ...]
) -> None:
    server.script([Raw([D({"content": "done"}), F("stop"), *end, *[b": still here\n\n"] * 1_000], gap=0.02)])
    provider = connect(Endpoint("compatible", server.url, KEY, Patience(idle=10, silent=0.3), anywhere=True))
    *_, reply = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    provider.close()
    assert isinstance(reply, Answered)
    assert (reply.message.text, reply.usage.output_tokens) == ("done", 2 if end and end[0] != DONE else None)


@pytest.mark.parametrize(("kind", "field"), [("openai", "max_completion_tokens"), ("compatible", "max_tokens")])
def test_the_output_limit_is_sent_under_the_servers_name_for_it(server: LLMServer, kind: str, field: str) -> None:
    server.script([Reply("ok")])
    with lease(Endpoint(kind, server.url, KEY, anywhere=True)) as provider:
        list(provider.stream(ModelRequest("m", "", [user("hi")], max_output_tokens=99), CancelToken()))
    assert server.requests[0].body[field] == 99


def test_an_unreadable_piece_of_the_stream_is_an_error(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": "x"}), b"data: {half\n\n", F("stop"), DONE])])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.trouble is Trouble.BROKEN_STREAM


def test_other_events_are_ignored(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([event({"type": "ping"}), event(["x"]), D({"content": "ok"}), F("stop"), DONE])])
    assert ask().text == "ok"

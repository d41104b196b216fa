"""The streaming cases of the case collection, at the adapter. Each test carries its id."""

import json

import pytest

from agents.providers import openai as adapter
from agents.providers.base import ProviderError, Trouble, Usage
from agents.providers.sse import Splitter
from memory.messages import Message, ToolResult, ToolUse, tool, user
from tests.agents.providers.conftest import Ask
from tests.llm_server import DONE, D, F, LLMServer, Raw, Reply, Request, Status, U, event


def _piece(arguments: str, **rest: object) -> dict[str, object]:
    name = rest.pop("name", None)
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {**rest, "function": function}


def _calls(*pieces: dict[str, object]) -> Raw:
    return Raw([*(D({"tool_calls": [piece]}) for piece in pieces), F("tool_calls"), DONE])


A = _piece('{"path":"a.txt"}', id="ca", type="function", name="read_file")
B = _piece('{"path":"b.txt"}', id="cb", type="function", name="read_file")


@pytest.mark.parametrize("raw", [_calls(A, B), Raw([D({"tool_calls": [A, B]}), F("tool_calls"), DONE])], ids=["a", "b"])
def test_prv_01_calls_without_index_stay_two(server: LLMServer, ask: Ask, raw: Raw) -> None:
    server.script([raw])
    assert ask().calls == [("ca", "read_file", {"path": "a.txt"}), ("cb", "read_file", {"path": "b.txt"})]


def test_prv_01_c_a_piece_that_names_nothing_continues_the_call(server: LLMServer, ask: Ask) -> None:
    server.script([_calls(_piece('{"pa', id="ca", name="read_file"), _piece('th":"a.txt"}'))])
    assert ask().calls == [("ca", "read_file", {"path": "a.txt"})]


def test_calls_without_any_id_get_one(server: LLMServer, ask: Ask) -> None:
    server.script([_calls(_piece("{}", name="now"), _piece('{"path":"a"}', name="read_file"))])
    calls = ask().calls
    assert [(name, arguments) for _, name, arguments in calls] == [("now", {}), ("read_file", {"path": "a"})]
    assert len({identity for identity, _, _ in calls} - {""}) == 2


def test_interleaved_pieces_find_their_call_by_index(server: LLMServer, ask: Ask) -> None:
    pieces = (
        _piece('{"path":', index=0, id="ca", name="read_file"),
        _piece('{"path":', index=1, id="cb", name="read_file"),
        _piece('"a.txt"}', index=0),
        _piece('"b.txt"}', index=1),
    )
    server.script([_calls(*pieces)])
    assert ask().calls == [("ca", "read_file", {"path": "a.txt"}), ("cb", "read_file", {"path": "b.txt"})]


def test_prv_02_a_new_id_starts_a_call_though_the_index_repeats(server: LLMServer, ask: Ask) -> None:
    first = _piece('{"path":"a.txt"}', index=0, id="x1", name="read_file")
    second = _piece('{"title":"t","text":"u"}', index=0, id="x2", name="add_note")
    server.script([_calls(first, second)])
    heard = ask()
    assert heard.calls == [("x1", "read_file", {"path": "a.txt"}), ("x2", "add_note", {"title": "t", "text": "u"})]
    _probe(ask, heard.message)


def _probe(ask: Ask, message: Message) -> None:
    """One turn later: the history passes the strict check, and the next message is answered."""
    results = [tool(ToolResult(id=call.id, content="done")) for call in message.calls]
    kept = [message] if message.blocks else []
    assert ask(user("hi"), *kept, *results, user("ping")).text == "pong"


@pytest.mark.parametrize(
    ("frame", "trouble", "retryable"),
    [
        (event({"error": "STREAM_EXPLODED"}), Trouble.BROKEN_STREAM, False),
        (b'event: error\ndata: {"message":"busy","type":"overloaded_error"}\n\n', Trouble.OVERLOADED, True),
        (
            b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
            Trouble.OVERLOADED,
            True,
        ),
        (b"event: error\ndata: busy now\n\n", Trouble.BROKEN_STREAM, False),
        (event({"object": "error", "message": "busy", "code": 429}), Trouble.RATE_LIMITED, True),
    ],
)
def test_prv_03_b_error_frames_in_all_forms(
    server: LLMServer, ask: Ask, frame: bytes, trouble: Trouble, retryable: bool
) -> None:
    server.script([Raw([frame, DONE])])
    with pytest.raises(ProviderError, match=r"STREAM_EXPLODED|busy") as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (trouble, retryable)


def test_prv_04_c_whole_arguments_have_no_problem(server: LLMServer, ask: Ask) -> None:
    pieces = [
        _piece('{"path":"notes.md"}', index=0, id="w1", name="write_file"),
        _piece("", index=1, id="w2", name="now"),
    ]
    server.script([_calls(*pieces)])
    assert [(call.arguments, call.problem) for call in ask().message.calls] == [
        ({"path": "notes.md"}, None),
        ({}, None),
    ]


def test_prv_05_empty_choices_and_a_chunk_of_usage_only(server: LLMServer, ask: Ask) -> None:
    filters = event({"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []})
    server.script([Raw([filters, D({"role": "assistant", "content": "ok"}), F("stop"), U(11, 1), DONE])])
    heard = ask()
    assert (heard.text, heard.reply.usage) == ("ok", Usage(11, 1, None))


def test_prv_05_b_usage_null_until_the_last(server: LLMServer, ask: Ask) -> None:
    def with_null(chunk: bytes) -> bytes:
        return event({**json.loads(chunk.removeprefix(b"data: ")), "usage": None})

    server.script([Raw([with_null(D({"content": "ok"})), with_null(F("stop")), U(11, 1), DONE])])
    heard = ask()
    assert (heard.text, heard.reply.usage) == ("ok", Usage(11, 1, None))


def test_prv_05_c_a_server_that_refuses_to_count_is_asked_once_more_and_remembered(server: LLMServer, ask: Ask) -> None:
    def picky(request: Request) -> Status | Reply:
        if "stream_options" in request.body:
            return Status(400, body={"error": {"message": "unknown field stream_options"}})
        return Reply("ok")

    server.script([picky] * 3)
    try:
        heard = ask()
        assert (heard.text, heard.reply.usage) == ("ok", Usage(None, None, None))
        ask()
    finally:
        adapter._manners.clear()
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]


def test_prv_05_a_refusal_that_only_repeats_the_request_is_not_about_counting(server: LLMServer, ask: Ask) -> None:
    def echo(request: Request) -> Status:
        detail = {"type": "missing", "loc": ["body", "x"], "msg": "Field required", "input": request.body}
        return Status(422, body={"detail": [detail]})

    server.script([echo, echo, Reply("ok", usage=(7, 1))])
    with pytest.raises(ProviderError):
        ask()
    assert ask().reply.usage == Usage(7, 1, None)


def _prv_07() -> list[bytes]:
    greeting = D({"content": "Grüße 🟡"}).replace(b"\\u00fc", "ü".encode())
    umlaut, circle = greeting.index(b"\xc3\xbc") + 1, greeting.index(b"\xf0\x9f") + 2
    end = D({"content": "!"}).removesuffix(b"\n\n")
    return [
        *(b":\n", b": PROCESSING\n\n", b"id: 5\n\n", b"data:\n\n", b'event: ping\ndata: {"type":"ping"}\n\n'),
        *(greeting[:umlaut], greeting[umlaut:circle], greeting[circle:]),
        *(end + b"\r", b"\n\r\n"),
        F("stop") + DONE.removesuffix(b"\n"),
    ]


@pytest.mark.parametrize("writes", [_prv_07(), [bytes([byte]) for byte in b"".join(_prv_07())]], ids=["a", "b"])
def test_prv_07_keep_alives_and_cuts_anywhere(server: LLMServer, ask: Ask, writes: list[bytes]) -> None:
    server.script([Raw(writes, gap=0.02 if len(writes) < 50 else 0.0001)])
    assert ask().text == "Grüße 🟡!"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_prv_07_the_splitter_knows_every_line_end_at_every_cut(end: bytes, size: int) -> None:
    lines = [b"\xef\xbb\xbfevent: a", b"data: 1", b"data:2", b"", b": life", b"", b"data:  x ", b"", b"data: last"]
    stream = end.join(lines)
    splitter = Splitter()
    found = [sse for at in range(0, len(stream), size) for sse in splitter.feed(stream[at : at + size])]
    assert [(sse.event, sse.data) for sse in found + splitter.end()] == [(b"a", b"1\n2"), (b"", b" x "), (b"", b"last")]


def test_his_04_e_null_content_beside_a_call(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": None, "tool_calls": [A]}), F("tool_calls"), DONE])])
    heard = ask()
    assert [type(block) for block in heard.message.blocks] == [ToolUse]
    _probe(ask, heard.message)
    assert server.requests[-1].messages[2]["content"] is None


def test_blanks_between_words_survive(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([*(D({"content": piece}) for piece in ("\n", " a", "\n\n", "b ")), F("stop"), DONE])])
    assert ask().text == "\n a\n\nb "


def test_sto_01_c_and_sto_02_c_arguments_are_cleaned(server: LLMServer, ask: Ask) -> None:
    arguments = r'{"title":"n\u0000","text":"\udfe1","\ud83d\udfe1":["\ud83d"]}'
    server.script([_calls(_piece(arguments, index=0, id="c1", name="add_note"))])
    heard = ask()
    assert heard.calls == [("c1", "add_note", {"title": "n\ufffd", "text": "\ufffd", "🟡": ["\ufffd"]})]
    _probe(ask, heard.message)


def test_sto_02_a_a_character_cut_over_two_deltas_is_joined(server: LLMServer, ask: Ask) -> None:
    halves = [D({"content": "@"}).replace(b"@", half) for half in (rb"\ud83d", rb"\udfe1")]
    server.script([Raw([*halves, F("stop"), DONE])])
    assert ask().text == "🟡"


def test_sto_02_b_half_a_character_is_shown_as_such(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": "A@"}).replace(b"@", rb"\ud83d"), F("stop"), DONE])])
    heard = ask()
    assert heard.text == "A\ufffd"
    _probe(ask, heard.message)

"""Ollama over its own API: nothing is left out in silence, and the model stays where it is."""

from collections.abc import Iterator

import pytest

from agents.providers import probe
from agents.providers.base import Endpoint, Finish, ModelRequest, ProviderError, Trouble, Usage
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import connect
from memory.ids import new_id
from memory.messages import Image, Message, Text, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import READ_FILE, Heard
from tests.llm_ollama import LocalModel, OllamaServer, done, line, message
from tests.llm_script import Drop, Raw, Reply, Status
from tools.cancel import CancelToken

NDJSON = "application/x-ndjson"
CALL = ToolUse(id="c1", name="read_file", arguments={"path": "a", "deep": {"z": 1, "b": 2}})


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with OllamaServer() as running:
        yield running
        assert running.violations == []


def at(server: OllamaServer, *, window: int = 8_192, address: str = "") -> Endpoint:
    return Endpoint("ollama", address or server.url, anywhere=True, window=window, keep_seconds=900)


def ask(server: OllamaServer, *messages: Message, window: int = 8_192, **facts: object) -> Heard:
    request = ModelRequest("m", "Be brief.", messages or [user("hi")], [READ_FILE], **facts)  # type: ignore[arg-type]
    provider = connect(at(server, window=window))
    try:
        return Heard(list(provider.stream(request, CancelToken())))
    finally:
        provider.close()


def refused(server: OllamaServer, *messages: Message, window: int = 8_192) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(server, *messages, window=window)
    return caught.value


def test_text_thinking_and_counts_come_from_lines(server: OllamaServer) -> None:
    server.script([Reply("Good morning.", thinking="Greet them.", usage=(21, 4))])
    heard = ask(server)
    assert (heard.text, heard.thinking) == ("Good morning.", "Greet them.")
    assert heard.reply.usage == Usage(21, 4)
    assert heard.reply.finish is Finish.STOP


def test_calls_that_name_no_id_and_the_same_tool_are_told_apart(server: OllamaServer) -> None:
    lines = [message(tool_calls=[{"function": {"name": "read_file", "arguments": {"path": each}}}]) for each in "ab"]
    server.script([Raw([*lines, done()])])
    heard = ask(server)
    assert [(name, arguments) for _, name, arguments in heard.calls] == [
        ("read_file", {"path": "a"}),
        ("read_file", {"path": "b"}),
    ]
    assert len({identity for identity, _, _ in heard.calls}) == 2
    assert heard.reply.finish is Finish.TOOL_CALLS


def test_calls_of_one_line_are_told_apart_too(server: OllamaServer) -> None:
    both = [{"function": {"name": "read_file", "arguments": {"path": each}}} for each in "ab"]
    server.script([Raw([message(tool_calls=both), done()], content_type=NDJSON)])
    assert [arguments for _, _, arguments in ask(server).calls] == [{"path": "a"}, {"path": "b"}]


def test_the_context_and_the_stay_of_the_model_are_said_in_each_call(server: OllamaServer) -> None:
    server.script([Reply("ok")])
    ask(server, window=12_345, max_output_tokens=77)
    body = server.requests[0].body
    assert body["options"] == {"num_ctx": 12_345, "num_predict": 77}
    assert body["keep_alive"] == "900s"
    assert (body["truncate"], body["shift"]) == (False, False)
    assert server.loaded == [12_345]


def test_prv_10_what_does_not_fit_is_refused_and_not_cut(server: OllamaServer) -> None:
    error = refused(server, user("x" * 10_000), window=1_000)
    assert error.trouble is Trouble.TOO_LONG
    assert not error.retryable


def test_results_name_their_tool_and_arguments_are_objects_in_one_order(server: OllamaServer) -> None:
    server.always(Reply("ok"))
    told = [user("read"), assistant("", [CALL]), tool(ToolResult(id="c1", content=" ")), assistant("Done."), user("go")]
    ask(server, *told)
    turned = CALL.model_copy(update={"arguments": {"deep": {"b": 2, "z": 1}, "path": "a"}})
    ask(server, told[0], assistant("", [turned]), *told[2:])
    first, second = (request.raw for request in server.requests)
    assert first == second
    _, _, called, result, *_ = server.requests[0].messages
    assert called["tool_calls"][0]["function"]["arguments"] == CALL.arguments
    assert result == {"role": "tool", "tool_call_id": "c1", "tool_name": "read_file", "content": "(no output)"}


def test_a_result_names_its_tool_although_the_call_was_sent_in_another_run(server: OllamaServer) -> None:
    server.always(Reply("ok"))
    memo: dict[str, object] = {}
    told = [user("read"), assistant("", [CALL])]
    ask(server, *told, tool(ToolResult(id="c1", content="x")), memo=memo)
    ask(server, *told, tool(ToolResult(id="c1", content="y")), memo=memo)
    assert server.requests[-1].messages[-1]["tool_name"] == "read_file"


def test_each_picture_has_a_message_to_itself_and_one_that_is_gone_is_named(server: OllamaServer) -> None:
    server.always(Reply("ok"))
    size = {"width": 1, "height": 1, "size": 3}
    shown, lost = (Image(id=new_id(), media_type="image/png", name=f"{name}.png", **size) for name in ("shown", "lost"))
    blocks = (Text(text="Look:"), shown, Text(text="and"), lost, Text(text="What is it?"))
    ask(
        server,
        Message(role="user", blocks=blocks),
        load=lambda image: b"png" if image == shown else None,
    )
    assert server.requests[0].messages[1:] == [
        {"role": "user", "content": "Look:"},
        {"role": "user", "content": '<image name="shown.png"/>', "images": ["cG5n"]},
        {"role": "user", "content": "and"},
        {"role": "user", "content": "[The picture lost.png was left out here: it does not exist any more.]"},
        {"role": "user", "content": "What is it?"},
    ]


def test_an_answer_that_was_cut_by_its_limit_says_so(server: OllamaServer) -> None:
    server.script([Reply("Half of", finish="length")])
    assert ask(server).reply.finish is Finish.LENGTH


def test_counts_that_are_missing_are_unknown(server: OllamaServer) -> None:
    server.script([Raw([message(content="hi"), done(prompt=None)], content_type=NDJSON)])
    assert ask(server).reply.usage == Usage(None, 3)


def test_lines_may_be_cut_anywhere(server: OllamaServer) -> None:
    whole = message(content="grün") + done()
    server.script([Raw([whole[at : at + 7] for at in range(0, len(whole), 7)], gap=0.001, content_type=NDJSON)])
    assert ask(server).text == "grün"


def test_a_whole_answer_is_as_good_as_a_stream(server: OllamaServer) -> None:
    whole = line({"message": {"role": "assistant", "content": "hi"}, "done": True, "done_reason": "stop"})
    server.script([Raw([whole.rstrip()], content_type="application/json")])
    assert ask(server).text == "hi"


@pytest.mark.parametrize(
    ("writes", "trouble"),
    [
        ([message(content="h"), line({"error": "model runner has unexpectedly stopped"})], Trouble.BROKEN_STREAM),
        ([message(content="h"), b"{nonsense\n"], Trouble.BROKEN_STREAM),
        ([message(content="h")], Trouble.BROKEN_STREAM),
    ],
)
def test_prv_03_a_stream_that_goes_wrong_is_no_answer(
    server: OllamaServer, writes: list[bytes], trouble: Trouble
) -> None:
    server.script([Raw(writes, content_type=NDJSON)])
    assert refused(server).trouble is trouble


@pytest.mark.parametrize(
    ("step", "trouble", "retryable"),
    [
        (Status(500, body={"error": "llama runner process has terminated"}), Trouble.OVERLOADED, True),
        (
            Status(503, body={"error": "server busy, please try again.  maximum pending requests exceeded"}),
            Trouble.OVERLOADED,
            True,
        ),
        (Status(401, body={"error": "unauthorized"}), Trouble.BAD_KEY, False),
        (Drop(), Trouble.UNREACHABLE, True),
    ],
)
def test_refusals_are_translated(server: OllamaServer, step: Status | Drop, trouble: Trouble, retryable: bool) -> None:
    server.script([step])
    error = refused(server)
    assert (error.trouble, error.retryable) == (trouble, retryable)


def test_a_model_that_is_not_there_or_has_no_tools_is_said_so(server: OllamaServer) -> None:
    server.models = {"m": LocalModel(can=["completion"])}
    error = refused(server)
    assert error.trouble is Trouble.NO_TOOLS
    assert not error.refuses_content
    server.models = {}
    assert refused(server).trouble is Trouble.MODEL_UNKNOWN


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        (LocalModel(), Capabilities(tools=True, images=False, thinking=False, context_length=8_192)),
        (LocalModel(longest=4_096), Capabilities(tools=True, images=False, thinking=False, context_length=4_096)),
        (
            LocalModel(["completion", "vision", "thinking"], num_ctx=65_536),
            Capabilities(tools=False, images=True, thinking=True, context_length=65_536),
        ),
    ],
)
def test_what_a_model_can_is_asked_of_its_server(server: OllamaServer, model: LocalModel, facts: Capabilities) -> None:
    server.models = {"m": model}
    assert probe.learn(at(server), "m") == facts
    assert probe.learn(at(server), "another") == Capabilities()


def test_the_models_are_listed_and_tested_at_either_form_of_the_address(server: OllamaServer) -> None:
    server.models = {"b": LocalModel(), "a": LocalModel(can=["completion"])}
    server.always(Reply(calls=[("report_ready", {"ready": True})]))
    for address in (server.url, server.address):
        assert probe.list_models(at(server, address=address)) == ["a", "b"]
        assert probe.test_connection(at(server, address=address), "b").ok
    verdict = probe.test_connection(at(server), "a")
    assert (verdict.ok, verdict.tools) == (False, False)
    assert verdict.message.startswith("This model cannot use tools, which agents need.")


@pytest.mark.parametrize("end", ["", "/v1", "/api"])
def test_it_may_stand_below_a_path(server: OllamaServer, end: str) -> None:
    server.below = "/gpu"
    server.script([Reply(calls=[("report_ready", {"ready": True})])])
    endpoint = at(server, address=f"{server.address}/gpu{end}")
    try:
        assert probe.list_models(endpoint) == ["m"]
        assert probe.test_connection(endpoint, "m").ok
        assert probe.learn(endpoint, "m").tools
    finally:
        server.below = ""


def test_a_conversation_sends_the_same_bytes_again(server: OllamaServer) -> None:
    server.always(Reply("ok"))
    first = [user("one"), assistant("two"), user("three")]
    ask(server, *first)
    ask(server, *first, assistant("four"), user("five"))
    earlier, later = (request.raw for request in server.requests)
    assert later.startswith(earlier.removesuffix(b"]}"))

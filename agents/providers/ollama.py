"""Ollama over its own API. Its OpenAI-compatible address has no word for the size of the context and leaves out the
oldest messages without a word when they do not fit (docs/decisions/0004).
"""

from collections.abc import Iterator
from dataclasses import replace

from pydantic import JsonValue

from agents.providers.base import GONE, Endpoint, Load, ModelRequest
from agents.providers.capabilities import Capabilities, positive
from agents.providers.chat_body import ChatBody, tool
from agents.providers.chat_messages import NO_OUTPUT, Back, Translate
from agents.providers.chat_reply import ChatReply
from agents.providers.client import Dialect
from agents.providers.codec import loads_exactly
from agents.providers.events import Payload
from agents.providers.images import key_of, with_images
from agents.providers.names import legal_name
from agents.providers.openai import OpenAIProvider, sdk_of
from agents.providers.translated import Translated
from memory.encoding import dumps
from memory.media import left_out
from memory.messages import Image, Message
from tools.cancel import CancelToken


class OllamaBody(ChatBody):
    """A call of `/api/chat`. What does not fit is refused (`truncate`, `shift`), so that the session is shortened by us
    and not by leaving out what came first."""

    memo = "ollama_body"

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        super().__init__("num_predict")

    def _translate(self, back: Back) -> Translate:
        return OllamaMessages().translate

    def _with_images(self, kept: Translated, load: Load | None) -> Iterator[bytes]:
        return with_images(kept, load, _image, _gone)

    def _head(self, request: ModelRequest, with_usage: bool) -> dict[str, JsonValue]:
        options: dict[str, JsonValue] = {}
        if self._endpoint.window:
            options["num_ctx"] = self._endpoint.window
        if request.max_output_tokens is not None:
            options["num_predict"] = request.max_output_tokens
        head: dict[str, JsonValue] = {"model": request.model, "stream": True, "truncate": False, "shift": False}
        head |= {"keep_alive": f"{self._endpoint.keep_seconds}s", "options": options}
        if request.tools:
            head["tools"] = [tool(spec) for spec in request.tools]
        return head


class OllamaMessages:
    """Messages in Ollama's form: arguments are objects, a result names the tool, and each picture has a message to
    itself, after the words that came before it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def translate(self, message: Message, ids: set[str], images: dict[bytes, Image]) -> list[JsonValue]:
        """As `chat_body.translate`; a key stands for the whole message of a picture."""
        sent: list[JsonValue] = []
        calls: list[JsonValue] = []
        texts: list[str] = []
        for block in message.blocks:
            if block.type == "tool_use":
                ids.add(block.id)
                self._names[block.id] = legal_name(block.name)
                arguments = loads_exactly(dumps(block.arguments, sort_keys=True))
                function: JsonValue = {"name": legal_name(block.name), "arguments": arguments}
                calls.append({"id": block.id, "function": function})
            elif block.type == "tool_result":
                sent.append(self._result(block.id, block.content, is_error=block.is_error))
            elif block.type == "image":
                key = key_of(block)
                images[key] = block
                sent += [*_said(message.role, texts), key.decode()]
                texts = []
            elif block.type == "text" or block.type == "file":
                texts.append(block.text if block.type == "text" else block.told)
        if calls:
            text = _joined(texts)
            return [*sent, {"role": "assistant", "content": text, "tool_calls": calls}]
        return [*sent, *_said(message.role, texts)]

    def _result(self, identity: str, content: str, *, is_error: bool) -> dict[str, JsonValue]:
        words = content if content.strip() else NO_OUTPUT
        sent: dict[str, JsonValue] = {"role": "tool", "tool_call_id": identity}
        if name := self._names.get(identity):
            sent["tool_name"] = name
        return {**sent, "content": f"Error: {words}" if is_error else words}


def _joined(texts: list[str]) -> str:
    return "\n\n".join(filter(str.strip, texts))


def _said(role: str, texts: list[str]) -> list[JsonValue]:
    text = _joined(texts)
    return [{"role": role, "content": text}] if text else []


def _image(image: Image, content: str) -> JsonValue:
    return {"role": "user", "content": image.told, "images": [content]}


def _gone(image: Image) -> JsonValue:
    return {"role": "user", "content": left_out(image, GONE).text}


class OllamaReply(ChatReply):
    """Feed it the lines of a stream; each brings whole calls, which have no place of their own."""

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self._called = 0

    def feed(self, payload: Payload) -> None:
        message = payload.get("message")
        delta: Payload = dict(message) if isinstance(message, dict) else {}
        delta["reasoning"] = delta.pop("thinking", None)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            delta["tool_calls"] = [self._placed(call) for call in calls if isinstance(call, dict)]
        super().feed({"model": payload.get("model"), "choices": [{"delta": delta}], "usage": _counts(payload)})
        if payload.get("done") is True:
            reason = payload.get("done_reason")
            self.finish_reason = self.finish_reason or (reason if isinstance(reason, str) and reason else None)
            self.over()

    def _placed(self, call: Payload) -> Payload:
        self._called += 1
        return {**call, "index": self._called}


class OllamaProvider(OpenAIProvider):
    """The address may end in `/v1`, as it does for the compatible one, or in `/api`, and stand below a path."""

    dialect = Dialect(sdk_of, "api/chat", "api/tags")

    def __init__(self, endpoint: Endpoint) -> None:
        above, _, last = endpoint.base_url.rpartition("/")
        root = above if last in ("v1", "api") else endpoint.base_url
        super().__init__(replace(endpoint, base_url=root), body=OllamaBody(endpoint))

    def models(self, cancel: CancelToken) -> list[str]:
        found = self._page(self.dialect.models, cancel).get("models")
        listed = found if isinstance(found, list) else []
        names = (model.get("name") for model in listed if isinstance(model, dict))
        return sorted(name for name in names if isinstance(name, str))

    def facts(self, model: str, cancel: CancelToken) -> Capabilities:
        """What the server says of a model. The context is what its own file asks for, else what it was made for, but
        no more than the endpoint's, because memory for all of it is taken when the model is loaded."""
        shown = self._page("api/show", cancel, dumps({"model": model}))
        window = _asked_for(shown.get("parameters"))
        if window is None and (longest := _made_for(shown.get("model_info"))):
            window = min(longest, self._endpoint.window or longest)
        can = shown.get("capabilities")
        if not isinstance(can, list):
            return Capabilities(context_length=window)
        return Capabilities(
            tools="tools" in can, images="vision" in can, thinking="thinking" in can, context_length=window
        )

    def _answer(self) -> OllamaReply:
        return OllamaReply(self._endpoint.answer_length)


def _asked_for(parameters: JsonValue) -> int | None:
    """The context that the model's file sets, which is shown as lines of a name and a value."""
    lines = parameters.splitlines() if isinstance(parameters, str) else []
    pairs = (line.split() for line in lines)
    return next((positive(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == "num_ctx"), None)


def _made_for(info: JsonValue) -> int | None:
    """The longest context of the model, which is told under the name of its architecture."""
    facts = info.items() if isinstance(info, dict) else ()
    return next((positive(value) for name, value in facts if name.endswith(".context_length")), None)


def _counts(payload: Payload) -> JsonValue:
    """The counts come with the last line; what was still in the server's cache is left out of the first of them."""
    if payload.get("done") is not True:
        return None
    return {"prompt_tokens": payload.get("prompt_eval_count"), "completion_tokens": payload.get("eval_count")}

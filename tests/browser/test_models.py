"""The first run connects a model in less than a minute, and what is connected can be changed (issue 4)."""

import time
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from agents.models import ModelConnection
from agents.services import assistant_of
from tests.browser.access import PHONE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import ModelConnectionFactory, ModelPriceFactory, UserFactory
from tests.llm_ollama import LocalModel, OllamaServer
from tests.llm_openrouter import OpenRouterServer
from tests.llm_script import Reply, Status
from tests.llm_server import LLMServer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# A busy machine takes its time.
expect.set_options(timeout=30_000)

READY = Reply(calls=[("report_ready", {"ready": True})])


@pytest.fixture
def newcomer() -> User:
    """Who has just made the owner's account."""
    person: User = UserFactory.create(staff=True)
    assistant_of(person)
    return person


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, newcomer: User) -> Iterator[Page]:
    window: BrowserContext = signed_in(browser, live_server.url, newcomer)
    yield window.new_page()
    window.close()


def test_an_ollama_that_runs_is_found_and_connected(page: Page, newcomer: User, lives_at: Callable[..., None]) -> None:
    with OllamaServer() as server:
        lives_at("ollama", server.url)
        server.models = {"qwen3:14b": LocalModel(num_ctx=32_768), "old": LocalModel(["completion"])}
        server.always(READY)
        began = time.monotonic()
        page.goto("/welcome/")
        assert page.get_by_label("Ollama").is_checked()
        expect(page.get_by_text("found", exact=True)).to_be_visible()
        option = page.locator(".option", has_text="Ollama")
        option.get_by_role("button", name="Test it").click()
        expect(option.get_by_text("Tools work.")).to_be_visible()
        option.get_by_label("Model", exact=True).select_option("old")
        expect(option.get_by_text("Tools work.")).to_have_count(0)
        option.get_by_label("Model", exact=True).select_option("qwen3:14b")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="What do you want to reach?")).to_be_visible()
        assert time.monotonic() - began < 60
    made = ModelConnection.objects.get(user=newcomer)
    assert (made.model, made.is_default, made.capabilities.context_length) == ("qwen3:14b", True, 32_768)


def test_openrouter_is_connected_with_a_key(page: Page, newcomer: User, lives_at: Callable[..., None]) -> None:
    with OpenRouterServer() as server:
        lives_at("openrouter", server.url)
        server.offer("vendor/model")
        server.always(Status(401, body={"error": {"code": 401, "message": "No cookie auth"}}), match="wrong-key")
        server.always(READY)
        began = time.monotonic()
        page.goto("/welcome/")
        page.locator("label[for=kind-openrouter]").click()
        option = page.locator(".option", has_text="OpenRouter")
        option.get_by_label("API key").fill("wrong-key")
        option.get_by_role("button", name="Test it").click()
        expect(option.get_by_text("Which model? The server has: vendor/model.")).to_be_visible()
        expect(option.get_by_label("Model", exact=True)).to_have_value("vendor/model")
        option.get_by_role("button", name="Test it").click()
        expect(option.get_by_text("The key is wrong")).to_be_visible()
        option.get_by_label("API key").fill("sk-or-0123456789")
        option.get_by_role("button", name="Test it").click()
        expect(option.get_by_text("Tools work.")).to_be_visible()
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="What do you want to reach?")).to_be_visible()
        assert time.monotonic() - began < 60
    made = ModelConnection.objects.get(user=newcomer)
    assert (made.kind, made.model, made.capabilities.tools) == ("openrouter", "vendor/model", True)


def test_a_llama_cpp_is_connected_by_its_address(page: Page, newcomer: User) -> None:
    with LLMServer() as server:
        server.pages["/v1/models"] = {"data": [{"id": "gemma-3-12b.gguf", "meta": {"n_ctx_train": 131_072}}]}
        server.pages["/props"] = {"default_generation_settings": {"n_ctx": 8_192}, "modalities": {"vision": True}}
        server.always(READY)
        began = time.monotonic()
        page.goto("/welcome/")
        page.locator("label[for=kind-compatible]").click()
        option = page.locator(".option", has_text="OpenAI-compatible server")
        option.get_by_label("Address").fill(server.url)
        option.get_by_role("button", name="Test it").click()
        expect(option.get_by_label("Model", exact=True)).to_have_value("gemma-3-12b.gguf")
        option.get_by_role("button", name="Test it").click()
        expect(option.get_by_text("Tools work.")).to_be_visible()
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="What do you want to reach?")).to_be_visible()
        assert time.monotonic() - began < 60
    made = ModelConnection.objects.get(user=newcomer)
    assert (made.capabilities.images, made.capabilities.context_length) == (True, 8_192)


def test_who_does_what_is_chosen_and_a_connection_is_changed(page: Page, newcomer: User) -> None:
    first = ModelConnectionFactory.create(user=newcomer, is_default=True, name="The big one")
    spare = ModelConnectionFactory.create(user=newcomer, model="gpt-5-nano")
    page.goto("/settings/models/")
    assert_usable(page)
    page.set_viewport_size(PHONE)
    for select in page.locator(".rows .select").all():
        told, box = select.locator("xpath=preceding-sibling::span").bounding_box(), select.bounding_box()
        assert told
        assert box
        assert box["y"] >= told["y"] + told["height"], "what it is for stands above it"
    page.get_by_label("If a model is out of reach").select_option(label="gpt-5-nano (OpenAI)")
    page.locator("section", has_text="Which model does what").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    assert assistant_of(newcomer).stand_in == spare
    page.get_by_role("link", name="Change The big one").click()
    page.get_by_label("Name").fill("The huge one")
    page.get_by_label("Sees images").select_option("no")
    assert page.get_by_label("New key").input_value() == ""
    assert_usable(page)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("summary", has_text="The huge one")).to_be_visible()
    first.refresh_from_db()
    assert (first.name, first.capabilities.images) == ("The huge one", False)


def test_what_can_be_done_with_a_price_stays_in_view_on_a_phone(page: Page, newcomer: User) -> None:
    ModelPriceFactory.create(user=newcomer)
    ModelConnectionFactory.create(user=newcomer, kind="compatible", model="some-model-with-a-long-name")
    page.set_viewport_size(PHONE)
    page.goto("/settings/costs/")
    table = page.get_by_label("Table of prices")
    for button in (table.get_by_role("button", name="Remove the price"), table.get_by_role("link", name="Set a price")):
        box = button.bounding_box()
        assert box
        assert box["x"] + box["width"] <= PHONE["width"]
    table.get_by_role("link", name="Set a price").click()
    expect(page.get_by_label("Input")).to_be_focused()

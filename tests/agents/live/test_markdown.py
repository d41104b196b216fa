"""REN-01 (half-open markup while streaming) and REN-02 (script injection), on the renderer itself."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from agents.live.half_open import close
from agents.live.markdown import render, render_stream

VOID = {"br", "hr"}

SNIPPETS = {
    "fence": "Look:\n\n```py\n# not a heading\nkill $1\n\\(x\\)\n<answer>\n<script>alert(1)</script>\n```",
    "fence of four": "````\n```py\nx = 1\n```\n````\n\nafter",
    "tildes": "~~~\n``` <b>\n~~~\nafter",
    "fence in a list": "1. first\n\n   ```sh\n   kill $1\n   ```\n\n2. second",
    "lone backtick": "a ` alone\n\nnext",
    "table": "before\n\n| a | b |\n|---|--:|\n| 1 | `2` |\n\nafter",
    "bold without end": "this is **bold without end",
    "half a link": "see [link](http://exa",
    "stopped inside a fence": "text\n\n```js\nlet x = `<b>`;\n",
    "carriage returns": "one\r\n\r\n```\r\ncode\r\n```\r\n\r\n# two",
    "looks like a list": "- a\n*b* is text\n\n- c\n\n--- x",
}
PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    '<iframe srcdoc="<script>alert(1)</script>">',
    "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVa&#09;script:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    '<a href=" &#x6a;avascript:alert(1)">x</a>',
    "```<img src=x onerror=alert(1)>\ncode",
    "</textarea><script>alert(1)</script>",
    "<form action=//e.example><input name=p>",
    "![x](javascript:alert(1))",
    "![x](http://evil.example/beacon.png)",
    "<javascript:alert(1)>",
    "[x](//evil.example)",
    "[x](vbscript:x 'onmouseover=alert(1)')",
    '[x](http://a.example "><script>alert(1)</script>")',
    "[x]: javascript:alert(1)\n\n[x]",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<hx-partial hx-target=body><b>x</b></hx-partial>",
    "<p hx-get=/account/delete hx-trigger=load>x</p>",
]


class Page(HTMLParser):
    """Reads HTML the way a test needs it: every tag, every attribute, the text, and whether it is balanced."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_safe(html: str) -> Page:
    page = Page(html)
    assert page.open == []
    assert not {"script", "img", "iframe", "svg", "form", "input", "textarea", "style", "answer"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith(("on", "hx-", "style")), name
        if name == "href":
            assert value.startswith(("http://", "https://", "mailto:")), value
    return page


@pytest.mark.parametrize("step", [1, 2, 3, 7])
@pytest.mark.parametrize("text", SNIPPETS.values(), ids=SNIPPETS)
def test_ren_01_a_stream_is_sane_at_every_step_and_ends_as_the_whole(text: str, step: int) -> None:
    seen: list[str] = []
    for end in [*range(step, len(text), step), len(text)]:
        blocks, tail = render_stream(text[:end])
        assert_safe("".join(blocks) + tail)
        assert blocks[: len(seen)] == seen, "a finished block changed"
        seen = blocks
    assert render(text).startswith("".join(seen))


@pytest.mark.parametrize("name", ["fence", "fence of four", "tildes", "fence in a list", "table", "looks like a list"])
def test_ren_01_closed_markup_streams_to_exactly_the_whole_page(name: str) -> None:
    blocks, tail = render_stream(SNIPPETS[name])
    assert "".join(blocks) + tail == render(SNIPPETS[name])


def test_ren_01_a_closing_fence_in_the_last_bytes_is_not_code() -> None:
    page = assert_safe(render(SNIPPETS["fence"]))
    assert "```" not in page.text
    assert "# not a heading\nkill $1\n\\(x\\)\n<answer>\n<script>alert(1)</script>" in page.text


def test_ren_01_three_backticks_do_not_close_four() -> None:
    html = render(SNIPPETS["fence of four"])
    assert html.count("<pre") == 1
    assert "<p>after</p>" in html


def test_ren_01_text_after_an_open_fence_of_another_message_is_not_swallowed() -> None:
    _, tail = render_stream(SNIPPETS["stopped inside a fence"])
    page = Page(tail + "<p>next message</p>")
    assert page.open == []
    assert tail.count("<pre") == 1


@pytest.mark.parametrize(
    ("half", "shown"),
    [
        ("this is **bo", "this is **bo**"),
        ("this is **", "this is "),
        ("a `co", "a `co`"),
        ("a `**` co", "a `**` co"),
        ("see [link](http://exa", "see link"),
        ("text\n``", "text"),
        ("~~go", "~~go~~"),
    ],
)
def test_ren_01_half_open_inline_markup_is_closed_for_the_eye(half: str, shown: str) -> None:
    assert close(half) == shown


@given(st.text(alphabet="ab `*_~#->|[](){}<&;:!\\\n\r\t1.=+\"'/", max_size=120), st.integers(1, 9))
def test_ren_01_any_text_streams_safely_and_finished_blocks_never_change(text: str, step: int) -> None:
    seen: list[str] = []
    for end in [*range(step, len(text), step), len(text)]:
        blocks, tail = render_stream(text[:end])
        assert_safe("".join(blocks) + tail)
        assert blocks[: len(seen)] == seen
        seen = blocks
    assert render(text).startswith("".join(seen))


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("frame", ["{}", "before {} after", "- item {}", "> {}", "| a |\n|---|\n| {} |", "**{}**"])
def test_ren_02_no_payload_becomes_active(payload: str, frame: str) -> None:
    text = frame.format(payload)
    assert_safe(render(text))
    for end in range(len(text)):
        blocks, tail = render_stream(text[:end])
        assert_safe("".join(blocks) + tail)


def test_ren_02_harmless_angle_brackets_are_shown_in_full() -> None:
    page = assert_safe(render("Use `<local-chat>` and a < b > c."))
    assert page.text.strip() == "Use <local-chat> and a < b > c."


@pytest.mark.parametrize("payload", [payload for payload in PAYLOADS if payload.startswith(("<i", "<s", "<f", "<h"))])
def test_ren_02_html_in_the_source_is_shown_as_text(payload: str) -> None:
    assert payload in Page(render(payload)).text


def test_links_leave_without_a_trace_and_say_where_they_lead() -> None:
    attributes = dict(Page(render("[x](https://a.example/b?c=1)")).attributes)
    assert attributes == {
        "href": "https://a.example/b?c=1",
        "title": "a.example",
        "target": "_blank",
        "rel": "noopener noreferrer nofollow",
    }


def test_pictures_are_offered_as_links() -> None:
    html = render("![a cat](https://a.example/cat.png)")
    assert "<img" not in html
    assert ">a cat</a>" in html


def test_code_has_a_header_a_copy_button_and_colours() -> None:
    html = render("```py\nimport csv  # why\n```")
    assert "<span>py</span>" in html
    assert "data-copy" in html
    assert '<span class="k">import</span>' in html
    assert '<span class="c"># why</span>' in html


def test_boxes_in_lists_are_drawn() -> None:
    html = render("- [ ] shoes\n- [X] socks\n- [ ]no\n\n[ ] text")
    assert html == "<ul>\n<li>☐ shoes</li>\n<li>☑ socks</li>\n<li>[ ]no</li>\n</ul>\n<p>[ ] text</p>\n"


def test_headings_start_below_the_title_of_the_page() -> None:
    assert render("# a\n\n## b\n\n###### c") == "<h2>a</h2>\n<h3>b</h3>\n<h4>c</h4>\n"


def test_tables_can_scroll_and_align_figures() -> None:
    html = render(SNIPPETS["table"])
    assert '<div class="table-wrap"><table class="table">' in html
    assert "<td data-num" in html

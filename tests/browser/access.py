"""Whether everybody can use a page: on a wide screen and a phone, light and dark."""

import itertools
from typing import Any

from axe_playwright_python.sync_playwright import Axe, AxeResults
from playwright.sync_api import Page

WIDE: Any = {"width": 1440, "height": 900}
PHONE: Any = {"width": 390, "height": 844}
SCHEMES: tuple[Any, ...] = ("light", "dark")
# Light and dark differ in colours alone, so only the rules about those are asked of both.
RULES: dict[str, Any] = {
    "light": {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}},
}


def assert_usable(page: Page) -> None:
    """No rule is broken and nothing sticks out, on any screen."""
    page.evaluate(Axe().axe_script)
    for viewport, scheme in itertools.product((WIDE, PHONE), SCHEMES):
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=scheme)
        where = (page.url, viewport["width"], scheme)
        found = AxeResults(page.evaluate("(rules) => axe.run(rules)", {**RULES[scheme], "resultTypes": ["violations"]}))
        assert found.violations_count == 0, (where, found.generate_report())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), where

"""What a conversation looks like to its reader, and what the reader does with it."""

from playwright.sync_api import Page

# What a page shows, without what its scripts keep there: clocks, the pill, marks of htmx, folds that are open,
# the order of attributes.
LOOK = """() => ["bar", "turns", "queue", "panel-body"].flatMap((id) => {
  const part = document.getElementById(id)?.cloneNode(true);
  if (!part) return [];
  const kept = "time[data-since], time[data-until], .live, .cell-body[hx-get]";
  part.querySelectorAll(kept).forEach((each) => each.replaceChildren());
  for (const each of [part, ...part.querySelectorAll("*")]) {
    for (const name of ["data-htmx-powered", "open", "hidden", "data-stale"]) each.removeAttribute(name);
    if (each.matches(".live")) each.removeAttribute("data-state");
    if (!each.getAttribute("class")) each.removeAttribute("class");
    const named = [...each.attributes].map(({ name, value }) => [name, value]).sort();
    for (const [name] of named) each.removeAttribute(name);
    for (const [name, value] of named) each.setAttribute(name, value);
  }
  return part.innerHTML.replace(/>\\s+/g, ">").replace(/\\s+</g, "<").replace(/\\s+/g, " ").trim().split(/(?=<)/);
})"""


def send(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def assert_equals_reload(page: Page) -> None:
    """Page + pushed cells == reloaded page."""
    pushed = page.evaluate(LOOK)
    page.reload()
    assert page.evaluate(LOOK) == pushed

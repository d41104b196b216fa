"""The web: searching it, and reading what is found. What comes back is text of strangers (mission D10)."""

from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from pydantic import Field

from memory.text import clip
from tools.base import Arguments, Outcome, Tool, ToolContext, ToolError, Topic, Wording
from tools.pages import NotReadable, Page, page_of
from tools.safe_fetch import Fetched, FetchFailed, safe_fetch
from tools.searching import Hit, Query, SearchFailed, Since, engine, withheld
from tools.seen import codes_made_up, was_given
from tools.untrusted import wrapped

# What stands around a part of a page, in characters: the part must fit into an observation with it.
AROUND: Final = 1_500
LEAST_PART: Final = 1_000
FOUND_NOTHING: Final = "Nothing was found. Other words may find something."
NOT_GIVEN: Final = (
    "This address was not opened. Only addresses are that stand, exactly so, in what the user wrote or in what "
    "web_search and web_fetch brought back here. Search for the page, or ask the user to write its whole address."
)
# Of a search in a run that has read text of strangers, in characters.
MOST_WORDS: Final = 200
NOT_SOUGHT: Final = (
    f"This was not searched for. After text of strangers was read, a search has at most {MOST_WORDS} characters, and "
    "of keys, long numbers and addresses only those that stand in what the user wrote or the web brought back here."
)


class Question(Arguments):
    query: str = Field(min_length=1, max_length=1_000, description="Words to look for, as in any search engine.")
    since: Since = Field("any", description="Only what has appeared within the last day, month or year.")
    most: int = Field(8, ge=1, le=20, description="How many results.")


class WebSearch(Tool[Question]):
    name = "web_search"
    topic = Topic.WEB
    description = (
        "Search the web. Returns titles, addresses, dates and snippets; read the pages that matter with web_fetch."
    )
    wording = Wording("globe", "Search the web", "Searching the web", "Searched the web", "Could not search the web")
    foreign = True
    is_work = True
    timeout_seconds = 60.0
    Arguments = Question

    def withheld(self) -> str:
        return withheld()

    def subject(self, arguments: Question) -> str:
        return f"“{clip(arguments.query, 60)}”"

    def went_well(self, observation: str) -> bool:
        return observation != FOUND_NOTHING

    def run(self, arguments: Question, context: ToolContext) -> Outcome:
        """The query is not repeated: an address that the model has put into it would come back as if found. An answer
        that is an error is a stranger's, too."""
        chosen = engine()
        if chosen is None or chosen.missing():
            raise ToolError("Nobody is set up to search the web.")
        if context.sources and _carries(arguments.query, context):
            raise ToolError(NOT_SOUGHT)
        try:
            hits = chosen.search(Query(arguments.query, arguments.most, arguments.since), context.cancel)
        except (SearchFailed, FetchFailed) as failed:
            raise ToolError(wrapped(chosen.name, str(failed)), (chosen.name,)) from failed
        summary = f"{self.subject(arguments)}, {len(hits)} found"
        if not hits:
            return Outcome(FOUND_NOTHING, summary)
        listed = "\n\n".join(f"{number}. {_told(hit)}" for number, hit in enumerate(hits, 1))
        return Outcome(wrapped(chosen.name, listed), summary, sources=(chosen.name,))


class Place(Arguments):
    url: str = Field(
        max_length=4_000, description="The whole address, exactly as the user wrote it or a result shows it."
    )
    offset: int = Field(0, ge=0, description="From which character on; a long page says where it goes on.")


class WebFetch(Tool[Place]):
    name = "web_fetch"
    topic = Topic.WEB
    description = (
        "Read the text of a web page, as markdown with its links. Only addresses that the user wrote or that "
        "web_search and web_fetch brought back can be opened. Name the address when you use what it says."
    )
    wording = Wording("globe", "Read a page", "Reading a page", "Read a page", "Could not read the page")
    foreign = True
    is_work = True
    timeout_seconds = 60.0
    Arguments = Place

    def subject(self, arguments: Place) -> str:
        return clip(arguments.url, 80)

    def run(self, arguments: Place, context: ToolContext) -> Outcome:
        """Also an error is made of what a stranger answers: it is from the host that was asked."""
        address = arguments.url.partition("#")[0]
        if not was_given(context.thread_id, address):
            raise ToolError(NOT_GIVEN)
        try:
            fetched = safe_fetch(address, context.cancel)
            page = _readable(fetched)
            host = urlsplit(fetched.url).hostname or ""
            return Outcome(_part(page, fetched.url, host, arguments.offset), _summary(page, host), sources=(host,))
        except (FetchFailed, NotReadable) as failed:
            asked = urlsplit(address).hostname or address
            raise ToolError(wrapped(asked, str(failed)), (asked,)) from failed


def _carries(words: str, context: ToolContext) -> bool:
    """Whether words may be what a stranger has told the agent to carry out, to whoever searches (threat T10)."""
    return len(words) > MOST_WORDS or codes_made_up(context.thread_id, words)


def _told(hit: Hit) -> str:
    return "\n   ".join(filter(None, (hit.title, hit.address, hit.date, hit.snippet)))


def _readable(fetched: Fetched) -> Page:
    """Raises: NotReadable, also when the answer is a refusal."""
    if not HTTPStatus.OK <= fetched.status < HTTPStatus.MULTIPLE_CHOICES:
        raise NotReadable(f"There is no page: {urlsplit(fetched.url).hostname} answered {_status(fetched.status)}.")
    page = page_of(fetched)
    if not page.text.strip():
        raise NotReadable("The page has no text that can be read without a browser.")
    return page


def _status(code: int) -> str:
    try:
        return f"{code} ({HTTPStatus(code).phrase})"
    except ValueError:
        return str(code)


def _summary(page: Page, host: str) -> str:
    return f"“{clip(page.title, 80)}” ({host})" if page.title else host


def _part(page: Page, url: str, host: str, offset: int) -> str:
    """A part of the page with its title and where it is from, so that it can be cited.

    Raises: NotReadable: there is none from there on.
    """
    size = max(settings.WAYMARK_OBSERVATION_LENGTH - AROUND - len(url) - len(page.title), LEAST_PART)
    part, end = page.text[offset : offset + size], len(page.text)
    if not part:
        raise NotReadable(f"The page ends at {end:,} characters.")
    until = offset + len(part)
    head = "\n".join(filter(None, (f"# {page.title}" if page.title else "", f"From {url}{_dated(page)}")))
    rest = [f"[Characters {offset} to {until} of {end}; go on with offset {until}.]"] if until < end else []
    if not page.is_whole and until == end:
        rest.append("[The page is longer; only its beginning was read.]")
    return "\n".join((wrapped(host, f"{head}\n\n{part}"), *rest))


def _dated(page: Page) -> str:
    return f" ({page.date})" if page.date else ""

"""F16 over the websocket: a page whose connection is killed says where it stands and is told what is missing."""

import contextlib
import http.cookiejar
import re
import socket
import struct
import urllib.parse
import urllib.request
from collections.abc import Iterator
from random import Random

import orjson
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from agents.live.keys import order
from tests.faults.door import Door, Goal
from tests.faults.rules import LOST, REPEATED, Violation
from tests.faults.site import OWNER, Site
from tests.faults.trial import Tally, judged
from tests.faults.viewers import Viewer

PARTIAL = re.compile(r'<hx-partial hx-target="([^"]*)" hx-swap="([^"]*)">(.*?)</hx-partial>', re.S)
TURN = re.compile(r'id="(turn-[0-9a-f-]+)"')
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


class Page(Viewer):
    """What a browser has of a goal: pieces by their places, as they were drawn last. It begins before the first turn.

    again: frames that it had already. anew: how often it was sent everything, or told to load itself again.
    """

    def __init__(self, door: Door, goal: Goal, cookie: str, dice: Random | None = None) -> None:
        self.pieces: dict[str, str] = {}
        self.again: list[str] = []
        self.anew = 0
        self._cookie = cookie
        super().__init__(door, goal, dice)

    def _listen(self) -> None:
        with _connected(self._door, self._goal, self._cookie, self._last) as link:
            frames = self._dice.randint(0, 4) if self._dice else -1
            while not self._over.is_set() and frames:
                with contextlib.suppress(TimeoutError):
                    frames -= self._take(orjson.loads(link.recv(timeout=0.2)))

    def _take(self, frame: dict[str, str]) -> bool:
        """False: it was not about the goal."""
        if frame.get("type") == "reload":
            self.anew += 1
        elif seq := frame.get("seq"):
            self.again += [frame["content"][:80]] * (order(seq) <= order(self._last))
            for target, swap, html in PARTIAL.findall(frame["content"]):
                self.anew += target == "#turns" and swap == "innerMorph"
                if swap == "outerMorph":
                    self.pieces[target] = html
            self._last = seq
        return "type" in frame or "seq" in frame


def connection_lost_and_resumed(site: Site, rounds: int, dice: Random) -> Tally:
    """F16: one page loses its connection all the time, the other never. In the end both must look like a page that is
    loaded anew, and neither may have been told anything twice."""
    goals, found, breaks, cookie = site.goals(2), list[Violation](), 0, _signed_in(site)
    with site.worker():
        for goal in goals:
            steady, unsteady = Page(site.door, goal, cookie), Page(site.door, goal, cookie, Random(dice.random()))
            for _ in range(rounds):
                site.door.send(goal, "jot+put@0.1 mail@0.1 peek end@0.1")
                site.quiet([goal])
            for page in (steady, unsteady):
                page.finish()
                found += _differences(page, _loaded_anew(site.door, goal, cookie))
            breaks += unsteady.lost
    found += [Violation(LOST, "no connection was lost", "")] * (not breaks)
    remark = f"{breaks} lost connections"
    return judged(site, "F16 websocket resumed", goals, rounds * len(goals), remark=remark, also=found)


def _differences(page: Page, wanted: str) -> list[Violation]:
    turns = {f"#{name}" for name in TURN.findall(wanted)}
    stale = [target for target in turns if page.pieces.get(target, "nothing") not in wanted]
    found = [Violation(LOST, "a turn is not what a page shows that is loaded anew", target) for target in stale]
    found += [Violation(REPEATED, "a frame came twice", frame) for frame in page.again]
    found += [Violation(LOST, "a page was drawn anew instead of taken up", str(page.anew))] * bool(page.anew)
    return found or [Violation(LOST, "there is nothing to see", wanted[:80])] * (not turns)


def _loaded_anew(door: Door, goal: Goal, cookie: str) -> str:
    """What a page is sent that stands nowhere: everything."""
    with _connected(door, goal, cookie, "") as link:
        while "seq" not in (frame := orjson.loads(link.recv(timeout=30))):
            pass
    return str(frame["content"])


@contextlib.contextmanager
def _connected(door: Door, goal: Goal, cookie: str, after: str) -> Iterator[ClientConnection]:
    """A socket that has said where the page stands, and is cut off without a farewell.

    Raises:
        OSError: the connection was lost, or there was none.
    """
    address = f"ws{door.address.removeprefix('http')}/ws/threads/{goal.thread}/"
    try:
        with connect(address, additional_headers={"Cookie": cookie, "Origin": door.address}, proxy=None) as link:
            try:
                link.send(orjson.dumps({"type": "hello", "after": after}).decode())
                yield link
            finally:
                link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.close_socket()
    except WebSocketException as error:
        raise OSError(str(error)) from error


def _signed_in(site: Site) -> str:
    """The cookies of a browser in which the owner has signed in."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    address = f"{site.door.address}/accounts/login/"
    token = TOKEN.search(browser.open(address, timeout=30).read().decode())
    assert token
    form = {"login": OWNER["WAYMARK_OWNER_EMAIL"], "password": OWNER["WAYMARK_OWNER_PASSWORD"]}
    body = urllib.parse.urlencode(form | {"csrfmiddlewaretoken": token[1]}).encode()
    browser.open(address, body, timeout=30)
    cookies = {cookie.name: cookie.value for cookie in jar}
    assert "sessionid" in cookies, "the owner was not let in"
    return "; ".join(f"{name}={value}" for name, value in cookies.items())

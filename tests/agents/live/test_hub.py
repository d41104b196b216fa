"""Viewers get every event once, in order, or are told to start over."""

import asyncio
import threading
from uuid import UUID

import pytest

from agents.live.events import Think
from agents.live.hub import WAITING, Closed, hub
from agents.live.keys import KEPT_SECONDS, order, stream_key
from agents.live.snapshot import place, tip
from agents.live.stream import flush, publish, redis_client
from memory.ids import new_id
from tests.agents.live.looks import RUN, USER, nothing_more, off_loop, read, say, text_of, token, tokens

pytestmark = pytest.mark.usefixtures("closed_hub")


@pytest.fixture
def thread() -> UUID:
    return new_id()


async def test_what_is_published_after_attaching_arrives_once_and_in_order(thread: UUID) -> None:
    async with hub().attach(thread, tip(thread)) as feed:
        await off_loop(say, thread, "a", "b", "c")
        arrived = await read(feed, 3)
        assert text_of(arrived) == "abc"
        assert sorted(arrived, key=lambda each: order(each.id)) == arrived
        assert await nothing_more(feed)


async def test_what_was_published_before_attaching_is_replayed_from_the_cursor_on(thread: UUID) -> None:
    say(thread, "before ")
    cursor = tip(thread)
    say(thread, "a", "b")
    async with hub().attach(thread, cursor) as feed:
        assert feed.resumed
        assert text_of(await read(feed, 2)) == "ab"
        assert await nothing_more(feed)


async def test_no_gap_and_no_duplicate_while_others_publish_and_viewers_come_and_go(thread: UUID) -> None:
    cursor = tip(thread)
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        for number in range(1, 100_000):
            if stop.is_set():
                return
            written.append(token(number))
            publish(thread, USER, Think(run=RUN, text=token(number)))
            stop.wait(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    seen = ""
    for _ in range(25):
        async with hub().attach(thread, cursor) as feed:
            assert feed.resumed
            for arrival in await read(feed, 1):
                seen += text_of([arrival])
                cursor = arrival.id
    stop.set()
    await off_loop(writer.join)
    await off_loop(flush, 5)
    assert len(seen) > 100
    assert "".join(written).startswith(seen)


@pytest.mark.parametrize("cursor", ["", "nonsense", "0-0", "1-1", "99999999999999-0", "-", "+", "1-2-3", "٣-٣"])
async def test_a_cursor_that_is_stale_or_from_the_future_or_no_cursor_starts_over(thread: UUID, cursor: str) -> None:
    say(thread, "a")
    async with hub().attach(thread, cursor) as feed:
        assert not feed.resumed
        (arrival,) = await read(feed, 1)
        assert arrival.is_reset
        assert await nothing_more(feed)


async def test_REN_03_a_cursor_that_was_trimmed_away_starts_over(thread: UUID) -> None:
    cursor = tip(thread)
    say(thread, *(token(number) for number in range(1, 31)))
    redis_client().xtrim(stream_key(thread), maxlen=20, approximate=False)
    async with hub().attach(thread, cursor) as feed:
        assert (await read(feed, 1))[0].is_reset


async def test_a_quiet_thread_has_a_place_to_resume_from(thread: UUID) -> None:
    cursor = tip(thread)
    async with hub().attach(thread, cursor) as feed:
        assert feed.resumed
        assert await nothing_more(feed)
        await off_loop(say, thread, "a")
        assert text_of(await read(feed, 1)) == "a"


async def test_a_stream_that_ran_out_and_began_again_is_noticed(thread: UUID) -> None:
    cursor = tip(thread)
    assert 0 < redis_client().ttl(stream_key(thread)) <= KEPT_SECONDS
    say(thread, "lost")
    await asyncio.sleep(0.005)  # or the new stream could begin with the same id
    redis_client().delete(stream_key(thread))
    say(thread, "new")
    async with hub().attach(thread, cursor) as feed:
        assert (await read(feed, 1))[0].is_reset


async def test_after_a_snapshot_nothing_comes_twice(thread: UUID) -> None:
    say(thread, "a")
    async with hub().attach(thread, "") as feed:
        await off_loop(say, thread, "b")
        assert (await read(feed, 1))[0].is_reset
        where = place(thread)
        assert where.partial is not None
        assert where.partial.text == "ab"
        feed.skip_to(where.cursor)
        assert await nothing_more(feed)
        await off_loop(say, thread, "c")
        assert text_of(await read(feed, 1)) == "c"


async def test_REN_03_a_long_gap_is_replayed_whole(thread: UUID) -> None:
    cursor = tip(thread)
    say(thread, *(token(number) for number in range(1, 701)))
    async with hub().attach(thread, cursor) as feed:
        assert text_of(await read(feed, 700)) == tokens(1, 700)


async def test_two_viewers_of_a_thread_and_one_of_another_get_their_own(thread: UUID) -> None:
    other = new_id()
    async with (
        hub().attach(thread, tip(thread)) as first,
        hub().attach(thread, tip(thread)) as second,
        hub().attach(other, tip(other)) as third,
    ):
        await off_loop(say, thread, "mine")
        assert text_of(await read(first, 1)) == "mine"
        assert text_of(await read(second, 1)) == "mine"
        assert await nothing_more(third)


async def test_a_viewer_who_does_not_read_is_closed_and_finds_everything_by_its_cursor(thread: UUID) -> None:
    cursor = tip(thread)
    async with hub().attach(thread, cursor) as slow, hub().attach(thread, cursor) as quick:
        for number in range(1, WAITING + 51):
            await off_loop(say, thread, token(number))
            await read(quick, 1)
        with pytest.raises(Closed):
            await slow.arrivals(1)
    async with hub().attach(thread, cursor) as again:
        assert text_of(await read(again, WAITING + 50)) == tokens(1, WAITING + 50)


async def test_REN_03_a_lost_connection_is_healed_from_the_stream(thread: UUID) -> None:
    async with hub().attach(thread, tip(thread)) as feed:
        await off_loop(say, thread, "a")
        assert text_of(await read(feed, 1)) == "a"
        await off_loop(redis_client().client_kill_filter, _type="pubsub")
        await off_loop(say, thread, "b", "c")
        assert text_of(await read(feed, 2)) == "bc"
        assert await nothing_more(feed)


async def test_a_viewer_may_come_while_the_hub_is_still_connecting(thread: UUID) -> None:
    cursor = tip(thread)
    say(thread, "a")

    async def look() -> str:
        async with hub().attach(thread, cursor) as feed:
            return text_of(await read(feed, 1))

    assert await asyncio.gather(*(look() for _ in range(20))) == ["a"] * 20

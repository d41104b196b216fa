"""Pictures that were made to do harm: whatever comes in, what is kept is a picture of ours or nothing."""

import contextlib
import random
from functools import partial
from io import BytesIO
from uuid import UUID

import pytest
from PIL import Image as Pillow

from memory import images
from memory.attachments import Kept
from memory.files import text_of
from memory.images import TooManyPixels
from memory.messages import Image, user
from memory.pictures import PictureLimits, Pictures, plan
from tests.pictures import bomb, noise, opened, photo, picture

MOST = 1_000_000


def read(data: bytes, longest: int = 2_000) -> images.Picture | None:
    return images.read(data, longest=longest, most=MOST)


SOURCES = [
    picture(60, 40),
    picture(60, 40, "JPEG"),
    picture(60, 40, "WEBP"),
    picture(60, 40, "GIF"),
    photo(),
    noise(20, 20),
]


@pytest.mark.parametrize("seed", range(6))
def test_broken_pictures_are_pictures_or_nothing(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        data = bytearray(chance.choice(SOURCES))
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        found = None
        with contextlib.suppress(TooManyPixels):
            found = read(bytes(data))
        if found is not None:
            assert opened(found.content).size == (found.width, found.height)
            assert opened(found.content).format in ("PNG", "JPEG")


def test_pixels_are_counted_before_they_are_decoded() -> None:
    with pytest.raises(TooManyPixels) as problem:
        read(bomb(100_000, 10_000))
    assert problem.value.pixels == 1_000_000_000


def test_formats_that_nobody_sends_are_not_even_tried() -> None:
    for kind in ("BMP", "TIFF", "ICO", "PPM"):
        assert read(picture(kind=kind)) is None


def test_what_is_clear_stays_clear_and_fits() -> None:
    found = read(noise(990, 990))
    assert found is not None
    assert (found.media_type, opened(found.content).mode) == ("image/png", "RGBA")
    assert len(found.content) <= images.LARGEST
    assert found.width < 990


def test_a_photo_that_was_kept_without_losses_becomes_small() -> None:
    found = read(noise(990, 990, mode="RGB"))
    assert found is not None
    assert (found.media_type, found.width) == ("image/jpeg", 990)


def test_a_picture_of_sixteen_bit_greys_keeps_its_greys() -> None:
    made = Pillow.new("I;16", (256, 1))
    made.putdata([grey * 257 for grey in range(256)])
    data = BytesIO()
    made.save(data, "PNG")
    kept = read(data.getvalue())
    assert kept
    assert list(opened(kept.content).convert("L").tobytes()) == list(range(256))


def test_a_smaller_picture_is_the_same_bytes_each_time() -> None:
    found = read(noise(400, 300, mode="RGB"))
    assert found is not None
    first, second = (images.smaller(found.content, found.media_type, 200) for _ in range(2))
    assert first == second
    assert opened(first).size == (200, 150)


def test_text_is_text_and_nothing_else() -> None:
    assert text_of("\ufeffLäufe\r\n\t12 km".encode()) == "Läufe\r\n\t12 km"
    for data in (b"\x00", b"a\x1b[31m", "ä".encode("latin-1"), b"\xed\xa0\x80", "a".encode("utf-16")):
        assert text_of(data) is None, data


def image(size: int = 30, side: int = 10) -> Image:
    return Image(id=UUID(int=1), name="a.png", media_type="image/png", width=side, height=5, size=size)


def test_what_was_left_out_stays_so_for_a_while() -> None:
    """Each change costs the vendor's cache of everything behind it."""
    limits = PictureLimits(most=10, many=100)
    shown = [sum(isinstance(each, Image) for each in plan([image()] * n, limits, None)) for n in range(1, 31)]
    assert shown == [*range(1, 11), *range(5, 11), *range(5, 11), *range(5, 11), 5, 6]


def test_the_newest_picture_is_sent_however_large() -> None:
    limits = PictureLimits(size=100)
    planned = plan([image(), image(), image(10_000)], limits, None)
    assert [isinstance(each, Image) for each in planned] == [False, False, True]


def test_a_history_without_pictures_is_not_touched() -> None:
    messages = [user("hello")]
    pictures = Pictures(can_see=False)
    assert pictures.of(messages) is messages
    messages.append(user("again"))
    assert pictures.of(messages) is messages


def test_no_more_is_kept_than_fits() -> None:
    kept, made = Kept(10), list[int]()

    def make(number: int) -> bytes:
        made.append(number)
        return bytes(4)

    for number in (1, 2, 1, 3, 1, 2):
        assert kept.get(number, partial(make, number)) == bytes(4)
    assert made == [1, 2, 3, 2], "what was used last stays"
    assert kept.get(9, lambda: None) is None

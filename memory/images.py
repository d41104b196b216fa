"""Pictures of people, read and written anew: upright, without metadata, no larger than a model can use.

What comes out was made by us, pixel by pixel: nothing that a file hides (a page, a script, where a photo was taken)
survives it.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Final, Literal

from PIL import Image, ImageOps

# Checked here, before anything is decoded.
Image.MAX_IMAGE_PIXELS = None

READ: Final = ("PNG", "JPEG", "WEBP", "GIF")
THUMBNAIL_SIDE: Final = 480
# A drawing without losses may be this large; then it is a photo. Nothing is sent that is larger than the second. Bytes.
LARGE: Final = 1_500_000
LARGEST: Final = 3_500_000
# A decoder goes over all pixels in each scan of a JPEG; cameras and programs write about ten.
MOST_SCANS: Final = 100
# Parts of a file, some of which take several: each is looked at by slow code, and a large picture has a few thousand.
MOST_READS: Final = 20_000
# Seconds that somebody waits for the pictures of others.
PATIENCE: Final = 10
_SCAN: Final = re.compile(rb"\xff\xda\x00[\x06\x08\x0a\x0c\x0e]")
_FORMATS: Final = {"image/png": "PNG", "image/jpeg": "JPEG"}

# A picture takes four bytes a pixel while it is worked on, whatever its file has.
_one_by_one = threading.Lock()

type MediaType = Literal["image/png", "image/jpeg"]


class TooManyPixels(ValueError):
    """The picture is larger than may be decoded; `pixels` says how large."""

    def __init__(self, pixels: int) -> None:
        super().__init__(f"{pixels} pixels")
        self.pixels = pixels


class Busy(Exception):
    """Others' pictures took longer than anybody should wait."""


class _Counted(BytesIO):
    """A file of which no more than `MOST_READS` parts are read."""

    reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        if self.reads > MOST_READS:
            raise ValueError("too many parts")
        return super().read(size)


@dataclass(frozen=True, slots=True)
class Picture:
    content: bytes
    media_type: MediaType
    width: int
    height: int
    thumbnail: bytes


def read(data: bytes, *, longest: int, most: int) -> Picture | None:
    """Return a picture as it is kept; None: this is no picture that can be read, or none that anybody would make. Of a
    moving one, the first frame.

    Args:
        longest: pixels of its longer side. most: pixels that may be decoded.

    Raises:
        TooManyPixels: there are more.
        Busy: try again later.
    """
    if sum(1 for _ in _SCAN.finditer(data)) > MOST_SCANS:
        return None
    try:
        with _in_turn(), Image.open(_Counted(data), formats=READ) as image:
            return _picture(image, longest, most)
    except (TooManyPixels, Busy):
        raise
    except Exception:  # noqa: BLE001 (what decoders raise at hostile bytes has no common name)
        return None


def smaller(content: bytes, media_type: MediaType, longest: int) -> bytes:
    """Return one of our pictures with at most so many pixels on its longer side; the same bytes each time."""
    with _one_by_one, Image.open(BytesIO(content), formats=READ) as image:
        image.thumbnail((longest, longest))
        return _encoded(image, media_type)


@contextmanager
def _in_turn() -> Iterator[None]:
    if not _one_by_one.acquire(timeout=PATIENCE):
        raise Busy
    try:
        yield
    finally:
        _one_by_one.release()


def _picture(image: Image.Image, longest: int, most: int) -> Picture:
    if (pixels := image.width * image.height) > most:
        raise TooManyPixels(pixels)
    lossless = image.format in ("PNG", "GIF")
    image.draft("RGB", (longest, longest))
    ImageOps.exif_transpose(image, in_place=True)
    bare = _bare(image, longest)
    content, media_type = _best(bare, lossless=lossless)
    size = bare.size
    bare.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE))
    return Picture(content, media_type, *size, _encoded(bare, media_type))


def _bare(image: Image.Image, longest: int) -> Image.Image:
    """The pixels, not too many, and nothing of what came with them."""
    if image.mode.startswith("I"):  # greys of 16 bits, of which Pillow would make white
        image = image.convert("I").point(lambda grey: grey / 256).convert("L")
    pixels = image.convert("RGBA" if image.has_transparency_data else "RGB")
    pixels.thumbnail((longest, longest))
    bare = Image.new(pixels.mode, pixels.size)
    bare.paste(pixels)
    return bare


def _best(image: Image.Image, *, lossless: bool) -> tuple[bytes, MediaType]:
    """Keep what has no losses as it is, unless that is too large. Shrinks the picture when nothing else helps."""
    clear = image.mode == "RGBA"
    if lossless or clear:
        content = _encoded(image, "image/png")
        while clear and len(content) > LARGEST:
            image.thumbnail((image.width * 3 // 4, image.height * 3 // 4))
            content = _encoded(image, "image/png")
        if clear or len(content) <= LARGE:
            return content, "image/png"
    return _encoded(image, "image/jpeg"), "image/jpeg"


def _encoded(image: Image.Image, media_type: MediaType) -> bytes:
    out = BytesIO()
    image.save(out, _FORMATS[media_type], quality=85)
    return out.getvalue()

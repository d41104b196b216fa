"""Pictures of people, read and written anew: upright, without metadata, no larger than a model can use.

What comes out was made by us, pixel by pixel: nothing that a file hides (a page, a script, where a photo was taken)
survives it.
"""

import threading
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
_FORMATS: Final = {"image/png": "PNG", "image/jpeg": "JPEG"}

# A picture takes four bytes a pixel while it is worked on, whatever its file has.
_one_by_one = threading.Lock()

type MediaType = Literal["image/png", "image/jpeg"]


class TooManyPixels(ValueError):
    """The picture is larger than may be decoded; `pixels` says how large."""

    def __init__(self, pixels: int) -> None:
        super().__init__(f"{pixels} pixels")
        self.pixels = pixels


@dataclass(frozen=True, slots=True)
class Picture:
    content: bytes
    media_type: MediaType
    width: int
    height: int
    thumbnail: bytes


def read(data: bytes, *, longest: int, most: int) -> Picture | None:
    """Return a picture as it is kept; None: this is no picture that can be read. Of a moving one, the first frame.

    Args:
        longest: pixels of its longer side. most: pixels that may be decoded.

    Raises:
        TooManyPixels: there are more.
    """
    try:
        with _one_by_one, Image.open(BytesIO(data), formats=READ) as image:
            return _picture(image, longest, most)
    except TooManyPixels:
        raise
    except Exception:  # noqa: BLE001 (what decoders raise at hostile bytes has no common name)
        return None


def smaller(content: bytes, media_type: MediaType, longest: int) -> bytes:
    """Return one of our pictures with at most so many pixels on its longer side; the same bytes each time."""
    with _one_by_one, Image.open(BytesIO(content), formats=READ) as image:
        image.thumbnail((longest, longest))
        return _encoded(image, media_type)


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

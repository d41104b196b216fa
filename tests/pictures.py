"""Pictures and files as people and attackers send them."""

import random
import struct
import zlib
from io import BytesIO
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image


def upload(name: str, data: bytes, content_type: str = "image/png") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data, content_type)


def picture(width: int = 40, height: int = 30, kind: str = "PNG", color: str = "teal", **options: Any) -> bytes:
    out = BytesIO()
    Image.new("RGB", (width, height), color).save(out, kind, **options)
    return out.getvalue()


def noise(width: int, height: int, seed: int = 0, mode: str = "RGBA") -> bytes:
    """A PNG that no compression makes smaller: four bytes a pixel (three without transparency)."""
    pixels = random.Random(seed).randbytes(width * height * len(mode))
    out = BytesIO()
    Image.frombytes(mode, (width, height), pixels).save(out, "PNG")
    return out.getvalue()


def photo(width: int = 60, height: int = 20) -> bytes:
    """A JPEG of a phone that was held upright, which says where and by what it was taken."""
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it by 90 degrees
    exif[0x010F] = "SECRET-CAMERA"
    exif.get_ifd(0x8825)[2] = (48.0, 12.0, 30.0)
    return picture(width, height, "JPEG", exif=exif, comment=b"SECRET-COMMENT")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width: int, height: int) -> bytes:
    """A PNG of a few kilobytes with any number of black pixels."""
    rows = zlib.compressobj(9)
    body = b"".join(rows.compress(bytes(1 + (width + 7) // 8)) for _ in range(height)) + rows.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def text_bomb() -> bytes:
    """A small PNG whose comment unpacks to 20 MB."""
    plain = picture()
    comment = b"Comment\0\0" + zlib.compress(bytes(20_000_000), 9)
    return plain[:33] + _chunk(b"zTXt", comment) + plain[33:]


def _segment(marker: int, data: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data


def scans(side: int, count: int) -> bytes:
    """A small progressive JPEG, all grey, each of whose scans refines what is not there."""
    blocks = (-(-side // 8)) ** 2
    tables = [_segment(0xC4, bytes([0x00, 1, *[0] * 15, 0])), _segment(0xC4, bytes([0x10, 1, 1, *[0] * 14, 0xE0, 0]))]
    frame = _segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0]))
    first = _segment(0xDA, bytes([1, 1, 0, 0, 0, 1])) + bytes(-(-blocks // 8))
    rest, bits = blocks, ""
    while rest >= 16_384:
        run = min(rest, 32_767)
        bits, rest = bits + "0" + format(run - 16_384, "014b"), rest - run
    bits += "10" * rest
    bits += "1" * (-len(bits) % 8)
    body = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    refined = _segment(0xDA, bytes([1, 1, 0, 1, 63, 1])) + body
    head = b"\xff\xd8" + _segment(0xDB, bytes([0, *[1] * 64])) + frame
    return head + b"".join(tables) + first + refined * count + b"\xff\xd9"


def chunks(count: int) -> bytes:
    """A PNG of many parts that say nothing."""
    plain = picture()
    return plain[:33] + _chunk(b"abCd", b"") * count + plain[33:]


def markers(count: int) -> bytes:
    """A JPEG of the same kind."""
    plain = picture(kind="JPEG")
    return plain[:2] + _segment(0xEF, b"") * count + plain[2:]


def comments(count: int) -> bytes:
    """A GIF with a comment of so many pieces before its picture."""
    plain = picture(kind="GIF")
    at = plain.index(b",", 13 + (3 << ((plain[10] & 7) + 1)))
    return plain[:at] + b"!\xfe" + b"\x01a" * count + b"\0" + plain[at:]


def opened(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))

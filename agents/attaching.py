"""What people attach: read, checked against the limits of this server (threat T16), and refused in words."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from agents.refusals import Refused
from agents.shares import Shares
from memory.attachments import Prepared, prepare, within_text
from memory.files import safe_name
from memory.images import Busy, TooManyPixels
from tools.files import in_words

TOO_LARGE: Final = "attachment_too_large"
# Messages of one user whose files are read at the same time: each holds a thread that answers pages.
READ_AT_ONCE: Final = 4
_reading = Shares(lambda: READ_AT_ONCE)

type Upload = UploadedFile[Any]


def prepared(uploads: Sequence[Upload], user_id: int) -> list[Prepared]:
    """Read what a user attached to one message.

    Raises:
        Refused: there are too many, or one is empty or too large, or all together are; or too much is being read.
    """
    if len(uploads) > (most := settings.WAYMARK_ATTACHMENTS_PER_MESSAGE):
        raise Refused("too_many_attachments", f"{len(uploads)} files are attached; at most {most} can be sent at once.")
    _check_sizes(uploads)
    with _reading.one(user_id) as begun:
        if not begun:
            raise _busy()
        return within_text([_prepared(upload) for upload in uploads], settings.WAYMARK_ATTACHED_TEXT)


def _check_sizes(uploads: Iterable[Upload]) -> None:
    total = 0
    for upload in uploads:
        name, size = safe_name(upload.name or ""), upload.size or 0
        if not size:
            raise Refused("attachment_empty", f"{name} is empty.")
        if size > (most := settings.WAYMARK_ATTACHMENT_BYTES):
            raise Refused(TOO_LARGE, f"{name} has {in_words(size)}; a file may have at most {in_words(most)}.")
        total += size
    if total > (most := settings.WAYMARK_ATTACHMENTS_BYTES):
        raise Refused(
            TOO_LARGE, f"The files have {in_words(total)} together; a message may have at most {in_words(most)}."
        )


def _prepared(upload: Upload) -> Prepared:
    name, most = safe_name(upload.name or ""), settings.WAYMARK_IMAGE_PIXELS
    try:
        return prepare(name, upload.read(), longest=settings.WAYMARK_IMAGE_SIDE, pixels=most)
    except TooManyPixels as problem:
        counts = f"{problem.pixels / 1e6:,.0f} million pixels; a picture may have at most {most / 1e6:,.0f} million"
        raise Refused(TOO_LARGE, f"{name} has {counts}.") from problem
    except Busy:
        raise _busy() from None


def _busy() -> Refused:
    return Refused("attachments_busy", "Other files are being read. Try again in a moment.")


def check_quota(used: int, files: Iterable[Prepared]) -> None:
    """
    Raises:
        Refused: with these files the user would have more than may be kept.
    """
    most = settings.WAYMARK_ATTACHMENT_QUOTA
    if most and used + sum(each.block.size for each in files) > most:
        raise Refused(
            "attachments_full",
            f"Your attachments take {in_words(used)} of {in_words(most)}. They go with their goal when you delete it.",
        )

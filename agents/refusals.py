"""How a service says no."""

from django.conf import settings


class Refused(Exception):
    """The request cannot be met as asked. `code` is for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def queue_full() -> Refused:
    most = settings.WAYMARK_MAX_QUEUED_PER_USER
    return Refused("too_many_queued", f"{most} agents wait for their turn already. Try again when some are done.")


def too_many_waiting() -> Refused:
    most = settings.WAYMARK_MAX_WAITING_MESSAGES
    return Refused("too_many_waiting", f"{most} messages wait for this agent already. Try again when it has read them.")

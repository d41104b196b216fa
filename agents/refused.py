"""How services say no."""


class Refused(Exception):
    """The request cannot be met as asked. `code` is for programs, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

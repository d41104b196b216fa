"""What may go wrong while somebody signs in to a server (OAuth), in words for people. Nothing of an answer is repeated:
it may hold a secret."""


class SignInFailed(Exception):
    """Nothing came of it. `field` names what was wrong of what the user gave; empty when it is none of that."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class GrantRefused(SignInFailed):
    """The authorization server does not take what it was shown: a code, or tokens, are good for nothing any more."""

"""What the operator lists as programs that may be MCP servers (threat T12). Plain Python: the settings read it."""

import os.path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

# What the sandbox has of its own.
_OURS: Final = ("/proc", "/dev", "/sys")


def _word(text: str) -> str:
    if "\0" in text:
        raise ValueError("has a character that no program can be given")
    return text


def _place(path: str) -> str:
    if not path.startswith("/") or os.path.normpath(path) != path:
        raise ValueError("is no absolute path, written without “..” and without a slash at its end")
    if path == "/" or any(f"{path}/".startswith(f"{each}/") for each in _OURS):
        raise ValueError("is more than a program may have: name the folders that it needs")
    return path


type Word = Annotated[str, AfterValidator(_word)]
type Place = Annotated[Word, AfterValidator(_place)]
type Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Program(BaseModel):
    """A program and what it has beyond an empty sandbox.

    command: its words. network: whether it reaches all that this machine reaches. read, write: files and folders that
    it sees, and may change, beside its own. environment: variables, which may be credentials.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    command: list[Word] = Field(min_length=1)
    network: bool = False
    read: list[Place] = []
    write: list[Place] = []
    environment: dict[Name, Word] = Field(default={}, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _of_words(cls, given: Any) -> Any:
        """A list of words is a program that needs nothing more."""
        return {"command": given} if isinstance(given, list) else given

    @model_validator(mode="after")
    def _starts(self) -> "Program":
        name = self.command[0]
        if not name or ("/" in name and not name.startswith("/")):
            raise ValueError("a program is named by its absolute path, or by a name that is found in /usr/bin")
        return self


_PROGRAMS: Final = TypeAdapter(list[Program])


def programs_from(text: str) -> list[Program]:
    """Read WAYMARK_MCP_COMMANDS.

    Raises:
        ValueError: what is wrong with it, and where; never a value, which may be a credential.
    """
    try:
        found = _PROGRAMS.validate_json(text)
    except ValidationError as error:
        wrong = [
            (".".join(map(str, each["loc"])), each["msg"].removeprefix("Value error, ")) for each in error.errors()
        ]
        raise ValueError("; ".join(f"{place}: {why}" if place else why for place, why in wrong)) from None
    if len({tuple(program.command) for program in found}) < len(found):
        raise ValueError("a command is listed twice")
    return found

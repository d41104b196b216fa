"""Servers that are programs on this machine: whose they may be, which, and what they have there (threat T12)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User

from tools.mcp.program_list import Program
from tools.sandbox.box import TEMPORARY, Room


def startable(user: User) -> list[list[str]]:
    """The commands that a user may have as servers: of staff those that the operator has listed, word for word."""
    programs = settings.WAYMARK_MCP_COMMANDS if user.is_staff and user.is_active else []
    return [program.command for program in programs]


def may_start(user: User, argv: Sequence[str]) -> bool:
    return [*argv] in startable(user)


def program_of(argv: Sequence[str]) -> Program | None:
    """What the operator says of a command; None when it is not allowed."""
    return next((each for each in settings.WAYMARK_MCP_COMMANDS if each.command == [*argv]), None)


def room_of(program: Program) -> Room:
    """An empty folder, its own files, and what the operator has added."""
    return Room(
        TEMPORARY,
        reads={place: place for place in (*own_places(program.command[0]), *program.read)},
        writes={place: place for place in program.write},
        network=program.network,
        environment=program.environment,
        stays=True,
    )


def own_places(name: str) -> list[str]:
    """Files and folders without which a program does not start: itself; of one in a virtual environment that, and the
    Python that it was made from; of an interpreter its installation. What lies in /usr is there anyway."""
    if not name.startswith("/"):
        return []
    found = [place for path in (Path(name), Path(name).resolve()) for place in _around(path)]
    needed = [each for each in found if each != Path("/") and not each.is_relative_to("/usr")]
    return [*dict.fromkeys(map(str, needed))]


def _around(program: Path) -> Iterator[Path]:
    prefix = program.parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        yield prefix
        yield from _pythons(prefix)
    elif program.name.startswith("python"):
        yield prefix
    else:
        yield program


def _pythons(environment: Path) -> Iterator[Path]:
    """The installations that a virtual environment is made from, by the names that it has for them."""
    for line in (environment / "pyvenv.cfg").read_text().splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home":
            yield Path(value.strip()).parent
    yield (environment / "bin" / "python").resolve().parent.parent

"""System prompts: template files with XML sections, strict about missing and unused names."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent


def render(name: str, variables: Mapping[str, object]) -> str:
    """The core rules followed by the role `name`. Values are escaped, so that none can close its section.

    Raises:
        KeyError: the template names a variable that is not given.
        ValueError: a variable is given that the template does not name.
    """
    template = _template(name)
    unused = set(variables) - set(template.get_identifiers())
    if unused:
        raise ValueError(f"{name}.md does not use {', '.join(sorted(unused))}")
    role = template.substitute({key: escape(str(value)) or "(empty)" for key, value in variables.items()})
    return f"{_template('core').template.strip()}\n\n{role.strip()}\n"


def text(name: str) -> str:
    """A prompt without core rules and variables."""
    return _template(name).template.strip()


def exists(name: str) -> bool:
    """Whether there is a role of that name."""
    return (FOLDER / f"{name}.md").is_file()


@cache
def _template(name: str) -> Template:
    return Template((FOLDER / f"{name}.md").read_text(encoding="utf-8"))

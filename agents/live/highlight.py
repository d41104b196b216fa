"""Source code as HTML with the four classes of the house style: k(ey), s(tring), m(number), c(omment)."""

from collections.abc import Iterable
from itertools import groupby

from django.utils.html import escape
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType, is_token_subtype
from pygments.util import ClassNotFound

LONGEST = 20_000
"""Characters. Longer blocks stay plain: colouring them at every frame of a stream would cost more than it tells."""

_CLASSES = (
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Builtin, "k"),
    (Name.Tag, "k"),
    (String, "s"),
    (Number, "m"),
    (Comment, "c"),
)


def highlight(code: str, language: str) -> str:
    """Return `code` escaped, with spans around its tokens when the language is known."""
    if not language or len(code) > LONGEST:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return escape(code)
    return _spans(lexer.get_tokens(code))


def _spans(tokens: Iterable[tuple[_TokenType, str]]) -> str:
    parts = []
    for name, group in groupby(tokens, key=lambda pair: _class(pair[0])):
        text = escape("".join(value for _, value in group))
        parts.append(f'<span class="{name}">{text}</span>' if name else text)
    return "".join(parts)


def _class(kind: _TokenType) -> str:
    return next((name for parent, name in _CLASSES if is_token_subtype(kind, parent)), "")

"""Text of strangers, labelled for the model (mission D10)."""

import re
from typing import Final
from xml.sax.saxutils import quoteattr

TAG: Final = "untrusted"
# The beginning of such a tag, also with blanks or what cannot be seen in it, and with signs that only look like "<".
_LIKE_TAG: Final = re.compile(r"[<＜﹤‹〈](?=[\W_]{0,8}" + r"[\W_]{0,4}".join(TAG) + ")", re.IGNORECASE)


def wrapped(source: str, text: str) -> str:
    """Return `text` between tags that say where it is from. It can neither close them nor open its own; all else stays
    as it is, so that addresses in it can be copied.

    Args:
        source: as in `Outcome.sources`: the name of a host, a server, a file.
    """
    return f"<{TAG} source={quoteattr(source)}>\n{_LIKE_TAG.sub('&lt;', text)}\n</{TAG}>"

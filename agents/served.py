"""Attachments on their way out. Whatever they are, a browser runs nothing of them (threats T7, T8)."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags

from memory.models import Attachment

# They never change; but each time it is asked whether they may still be seen.
_CACHED = "private, no-cache"
# The browser's own page around a picture has styles in it.
_LOCKED = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def served(request: HttpRequest, attachment: Attachment, content: bytes | memoryview | None) -> HttpResponseBase:
    """Answer with the attachment or its thumbnail. Pictures, which are of our own making, are shown; the rest is saved
    as a file.

    Raises:
        Http404: there is no such content.
    """
    if content is None:
        raise Http404
    etag = f'"{attachment.sha256[:32]}-{len(content)}"'
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        response: HttpResponse = HttpResponseNotModified()
    else:
        charset = "; charset=utf-8" if attachment.media_type.startswith("text/") else ""
        response = HttpResponse(bytes(content), content_type=attachment.media_type + charset)
        saved = content_disposition_header(not attachment.is_picture, attachment.name)
        response["Content-Disposition"] = saved or "attachment"
    response["ETag"], response["Cache-Control"] = etag, _CACHED
    response["Content-Security-Policy"], response["X-Content-Type-Options"] = _LOCKED, "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    return response

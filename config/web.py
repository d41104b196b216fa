"""The settings of what agents read on the web. Part of `config.settings`."""

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.environment import Env

_env = Env()

# An address that a user, a model or another server has given: bytes that are read of it, seconds that it may take in
# all, and hosts inside the own network that may be opened nevertheless, such as wiki.home:8080.
WAYMARK_FETCH_BYTES = _env.int("WAYMARK_FETCH_BYTES", default=1_000_000)
WAYMARK_FETCH_SECONDS = _env.float("WAYMARK_FETCH_SECONDS", default=10)
WAYMARK_FETCH_PRIVATE: list[str] = _env.list("WAYMARK_FETCH_PRIVATE", default=[])
for _entry in WAYMARK_FETCH_PRIVATE:
    if not urlsplit(f"//{_entry}").hostname or not urlsplit(f"//{_entry}").port:
        raise ImproperlyConfigured(f"WAYMARK_FETCH_PRIVATE: {_entry!r} is not HOST:PORT.")

# Who searches the web: searxng (with its address), brave (with a key), ddgs, or nobody.
WAYMARK_SEARCH = _env.str("WAYMARK_SEARCH", default="")
if WAYMARK_SEARCH not in ("", "searxng", "brave", "ddgs"):
    raise ImproperlyConfigured("WAYMARK_SEARCH is searxng, brave, ddgs or empty.")
WAYMARK_SEARXNG_URL = _env.str("WAYMARK_SEARXNG_URL", default="")
WAYMARK_BRAVE_KEY = _env.str("WAYMARK_BRAVE_KEY", default="")

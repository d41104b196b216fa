"""The settings of notices: what a user is told where they do not look. Part of `config.settings`."""

import re
from base64 import urlsafe_b64decode

from django.core.exceptions import ImproperlyConfigured

from config.environment import Env

_env = Env()

# Seconds without being seen after which a notice goes to the user's browsers, and, where mail can be sent, by mail. The
# next feed names what was not seen even then.
WAYMARK_NOTICE_PUSH_SECONDS = _env.float("WAYMARK_NOTICE_PUSH_SECONDS", default=60)
WAYMARK_NOTICE_MAIL_SECONDS = _env.float("WAYMARK_NOTICE_MAIL_SECONDS", default=900)
if not 0 <= WAYMARK_NOTICE_PUSH_SECONDS <= WAYMARK_NOTICE_MAIL_SECONDS:
    raise ImproperlyConfigured("WAYMARK_NOTICE_MAIL_SECONDS is at least WAYMARK_NOTICE_PUSH_SECONDS.")

# How long notices are kept, with what became of them. Those of the last week are not told twice by it.
WAYMARK_NOTICE_KEPT_DAYS = _env.int("WAYMARK_NOTICE_KEPT_DAYS", default=90)
if WAYMARK_NOTICE_KEPT_DAYS < 7:
    raise ImproperlyConfigured("WAYMARK_NOTICE_KEPT_DAYS is at least 7.")

# Of the curve P-256: a private key is below it.
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
# Signs what is pushed to browsers: 32 bytes in URL-safe base64. With another, every browser must be switched on anew.
WAYMARK_VAPID_KEY = _env.str("WAYMARK_VAPID_KEY", default="")
_is_key = re.fullmatch(r"[\w-]{43}=?", WAYMARK_VAPID_KEY, re.ASCII)
if WAYMARK_VAPID_KEY and not (_is_key and 0 < int.from_bytes(urlsafe_b64decode(f"{WAYMARK_VAPID_KEY[:43]}=")) < _ORDER):
    raise ImproperlyConfigured("WAYMARK_VAPID_KEY is not 32 bytes in URL-safe base64.")

# Where people open Waymark: links in mails begin with it. `bin/up` says where it listens.
_origins = [origin for origin in _env.list("WAYMARK_ORIGINS", default=[]) if "*" not in origin]
WAYMARK_SITE = (_origins or [_env.str("WAYMARK_URL", default="http://127.0.0.1:8000")])[0].rstrip("/")
if not WAYMARK_SITE.startswith(("http://", "https://")):
    raise ImproperlyConfigured("WAYMARK_ORIGINS and WAYMARK_URL begin with http:// or https://.")

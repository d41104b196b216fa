"""How many may look on for one user at once, in one web process (WAYMARK_VIEWERS_PER_USER)."""

from django.conf import settings

from agents.shares import Shares

seats = Shares(lambda: int(settings.WAYMARK_VIEWERS_PER_USER))

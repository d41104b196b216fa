"""The one-time link by which the first user makes the owner's account.

There is nothing to store: the token is signed with the secret key, and it is good only while nobody has an account.
"""

from django.contrib.auth import get_user_model
from django.core import signing

SALT = "waymark.setup"
CLAIM = "owner"


def make(base_url: str) -> str:
    """The link, such as http://127.0.0.1:8000/setup/…/."""
    return f"{base_url.rstrip('/')}/setup/{signing.dumps(CLAIM, salt=SALT)}/"


def verify(token: str) -> bool:
    """Whether this token may make the owner's account now."""
    try:
        claim = signing.loads(token, salt=SALT)
    except signing.BadSignature:
        return False
    return claim == CLAIM and not get_user_model().objects.exists()

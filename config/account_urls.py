"""allauth's pages that Waymark has: the others are for addresses that are verified, or for other ways to sign in."""

from allauth.account.urls import urlpatterns as pages

OURS = (
    "account_login",
    "account_logout",
    "account_signup",
    "account_inactive",
    "account_reauthenticate",
    "account_change_password",
    "account_reset_password",
    "account_reset_password_done",
    "account_reset_password_from_key",
    "account_reset_password_from_key_done",
)

urlpatterns = [page for page in pages if page.name in OURS]

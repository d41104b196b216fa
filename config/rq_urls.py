"""django-rq's pages, for staff. They bring <style> elements, so their policy allows those; scripts stay ours alone."""

from typing import Any

from django.conf import settings
from django.urls import URLPattern
from django.utils.csp import CSP
from django.views.decorators.csp import csp_override
from django_rq.urls import urlpatterns as pages

POLICY: dict[str, Any] = {**settings.SECURE_CSP, "style-src": [CSP.SELF, CSP.UNSAFE_INLINE]}

app_name = "django_rq"
urlpatterns = [
    URLPattern(page.pattern, csp_override(POLICY)(page.callback), page.default_args, page.name) for page in pages
]

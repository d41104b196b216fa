"""The API's own description. It says nothing about anybody, so it is open to all."""

from typing import Any

from django.conf import settings
from django.utils.csp import CSP
from django.utils.decorators import method_decorator
from django.views.decorators.csp import csp_override
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from agents.api.base import Access

# Swagger UI brings <style> elements of its own; scripts stay ours alone (the split view has no inline script).
DOCS_CSP: dict[str, Any] = {**settings.SECURE_CSP, "style-src": [CSP.SELF, CSP.UNSAFE_INLINE]}


class Schema(SpectacularJSONAPIView):
    access = Access.PUBLIC
    authentication_classes = []


@method_decorator(csp_override(DOCS_CSP), name="dispatch")
class Docs(SpectacularSwaggerSplitView):
    access = Access.PUBLIC
    authentication_classes = []
    url_name = "api:schema"
    template_name = "api_docs.html"

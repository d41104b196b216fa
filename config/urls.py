"""The map of addresses. `/` are pages, `/api/v1/` is the contract with devices, `/admin/` is for staff."""

from django.contrib import admin
from django.urls import include, path

from config.health import healthz, readyz
from config.metrics import metrics
from config.setup_page import setup

handler500 = "agents.api_errors.server_error"

urlpatterns = [
    path("healthz", healthz),
    path("readyz", readyz),
    path("metrics", metrics),
    path("setup/<str:token>/", setup, name="setup"),
    path("accounts/", include("allauth.urls")),
    path("admin/django-rq/", include("config.rq_urls")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("config.api_urls")),
    path("", include("agents.urls")),
    path("", include("goals.urls")),
]

"""What stands in the log."""

import logging

import pytest
import structlog
from django.test import Client
from django.urls import reverse

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/nowhere/", "/api/v1/goals", "mcp_client", "mcp_signed_in"])
def test_no_query_of_a_request_is_logged(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """It may hold what is good for once, such as the code of a sign-in."""
    address = path if path.startswith("/") else reverse(path)
    answer = Client().post(f"{address}?state=canary&code=canary")
    assert answer.status_code >= 400
    formats = [handler.formatter for handler in logging.getLogger().handlers]
    ours = next(each for each in formats if isinstance(each, structlog.stdlib.ProcessorFormatter))
    lines = [ours.format(record) for record in caplog.records if record.name.startswith("django")]
    assert any(f"POST {address}" in line for line in lines)
    assert "canary" not in str(lines)

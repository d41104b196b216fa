"""Structured logs: one line an event, with the run and thread it belongs to."""

import logging
import logging.config
import os
import sys

import structlog
from django.http import HttpRequest

SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def _without_query(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Django adds requests as they are, whose queries hold what is good for once: codes and states of sign-ins, keys
    of links."""
    request = event.get("request")
    if isinstance(request, HttpRequest):
        event["request"] = f"{request.method} {request.path}"
    return event


def logging_config(level: str, style: str) -> None:
    """Send every log line through structlog to standard error.

    Args:
        level: a logging level's name.
        style: "console" for people, "json" for machines.
    """
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if style == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and "NO_COLOR" not in os.environ)
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*SHARED, structlog.stdlib.ExtraAdder(), _without_query],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            renderer,
        ],
    )
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in ("httpx2", "httpcore2", "openai", "daphne", "rq.worker", "django.channels.server"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it logs what servers say, and their session ids
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )

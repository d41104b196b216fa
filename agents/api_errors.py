"""What goes wrong, said in one shape: {"error": {"code", "message", "fields"?}}."""

import logging
from collections.abc import Mapping

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.http import Http404, HttpResponse, JsonResponse
from rest_framework import exceptions, status
from rest_framework.response import Response

from agents.refusals import Refused
from memory.documents import DocumentRefused
from memory.learnings import LearningRefused
from memory.notes import NoteRefused
from memory.pool import DATABASE_AWAY
from memory.skill_files import SkillRefused
from memory.skills import SkillTaken
from memory.text import clean_json
from tools.files import FileRefused
from tools.parts import RecordRefused

logger = logging.getLogger(__name__)


# What of a service's refusals is not the request's fault.
BUSY = ("too_many_queued", "too_many_waiting", "too_many_searches", "attachments_busy")
STATUSES = dict.fromkeys(BUSY, status.HTTP_429_TOO_MANY_REQUESTS)
OUR_FAULT = "Something went wrong on our side."
AWAY = "The database cannot be reached. Try again."


class TooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"
    default_detail = "The request is too large."


def exception_handler(problem: Exception, context: dict[str, object]) -> Response:
    """Answer any exception of a view. What is our own fault is logged and told to Django, as it would be without us."""
    match problem:
        case exceptions.ValidationError():
            return _invalid(problem.detail)
        case exceptions.APIException():
            return _answer(problem.status_code, _code(problem), str(problem.detail), headers=_headers(problem))
        case Refused():
            return _answer(STATUSES.get(problem.code, 400), problem.code, problem.message)
        case SkillTaken():
            return _answer(409, "skill_taken", str(problem))
        case NoteRefused() | DocumentRefused() | SkillRefused() | LearningRefused() | FileRefused() | RecordRefused():
            return _answer(400, "invalid", str(problem))
        case Http404():
            return _answer(404, "not_found", "There is no such thing here.")
        case SuspiciousOperation():  # what Django counts while it reads a form
            return _answer(400, "invalid", "The request has more parts than may be sent.")
        case PermissionDenied():
            return _answer(403, "permission_denied", "You may not do this.")
    return _our_fault(problem, context)


def server_error(problem: BaseException | None) -> HttpResponse:
    """What fails outside of a view, such as while an answer is written, in the one shape of errors."""
    if isinstance(problem, DATABASE_AWAY):
        error = {"code": "unavailable", "message": AWAY}
        return JsonResponse({"error": error}, status=503, headers={"Retry-After": "5"})
    return JsonResponse({"error": {"code": "server_error", "message": OUR_FAULT}}, status=500)


def _our_fault(problem: Exception, context: dict[str, object]) -> Response:
    request = context.get("request")
    got_request_exception.send(sender=None, request=getattr(request, "_request", request))
    logger.error("API request failed", exc_info=problem)
    if isinstance(problem, DATABASE_AWAY):
        return _answer(503, "unavailable", AWAY, headers={"Retry-After": "5"})
    return _answer(500, "server_error", OUR_FAULT)


def _invalid(detail: object) -> Response:
    if not isinstance(detail, Mapping):
        return _answer(400, "invalid", _first(detail))
    fields = {str(name): _messages(errors) for name, errors in detail.items()}
    general = fields.pop("non_field_errors", None)
    if general:
        return _answer(400, "invalid", general[0], fields or None)
    return _answer(400, "invalid", "; ".join(f"{name}: {errors[0]}" for name, errors in fields.items()), fields)


def _messages(errors: object) -> list[str]:
    return [str(error) for error in errors] if isinstance(errors, list | tuple) else [str(errors)]


def _first(detail: object) -> str:
    return _messages(detail)[0]


def _code(problem: exceptions.APIException) -> str:
    codes = problem.get_codes()
    return codes if isinstance(codes, str) else problem.default_code


def _headers(problem: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if auth_header := getattr(problem, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(problem, "wait", None):
        headers["Retry-After"] = str(int(wait))
    return headers


def _answer(
    status_code: int,
    code: str,
    message: str,
    fields: dict[str, list[str]] | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """What the caller sent may be quoted in it, such as a field's name, and need not be text that UTF-8 can hold."""
    error: dict[str, object] = {"code": code, "message": message}
    if fields:
        error["fields"] = fields
    return Response({"error": clean_json(error)}, status=status_code, headers=headers)

"""Whether this process lives, and whether the whole is ready for work."""

from django.http import HttpRequest, HttpResponse, JsonResponse

from agents import vitals
from memory import disk


def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers; touches nothing else."""
    return HttpResponse("ok", content_type="text/plain")


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when database, Redis, a worker (seen in the last minute) and room on the disk are there, else 503; says what
    is missing, within seconds also of a server that hangs. The bytes are null where no disk of ours can be seen."""
    workers, free = vitals.workers(), min((free for _, free in vitals.disks()), default=None)
    parts = {
        "database": not vitals.database_trouble(),
        "redis": workers is not None,
        "worker": bool(workers),
        "disk": free is None or free >= disk.LEAST,
    }
    return JsonResponse({**parts, "disk_free_bytes": free}, status=200 if all(parts.values()) else 503)

"""For how long the monitor has been watching without a break."""

from datetime import timedelta
from itertools import pairwise

from django.conf import settings
from django.utils import timezone

from agents.models import HealthReport

# So many of its pauses without a report are a break.
MISSED = 3


def watched_for(seconds: float) -> bool:
    """Whether the monitor, and so a worker, was there all the time. After a night without power the runs of the day
    before have given no sign for hours, and are not to blame."""
    now = timezone.now()
    begin = now - timedelta(seconds=seconds)
    pause = timedelta(minutes=MISSED * settings.WAYMARK_HEALTH_MINUTES)
    reports = HealthReport.objects.filter(by_hand=False, name="stuck_runs", at__gte=begin - pause)
    times = [*reports.order_by("at").values_list("at", flat=True), now]
    return times[0] <= begin and all(later - earlier <= pause for earlier, later in pairwise(times))

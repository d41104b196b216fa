"""The settings of worker processes. Part of `config.settings`."""

from config.environment import Env

_env = Env()

# The worker (docs/operations.md). Seconds.
WAYMARK_LEASE_SECONDS = _env.float("WAYMARK_LEASE_SECONDS", default=30)
WAYMARK_RENEW_SECONDS = _env.float("WAYMARK_RENEW_SECONDS", default=5)
WAYMARK_SWEEP_SECONDS = _env.float("WAYMARK_SWEEP_SECONDS", default=5)
WAYMARK_TICK_SECONDS = _env.float("WAYMARK_TICK_SECONDS", default=60)
WAYMARK_DRAIN_SECONDS = _env.float("WAYMARK_DRAIN_SECONDS", default=30)
# Jobs beside the runs (summaries, look-ups) that a worker does at once, each for another user.
WAYMARK_ERRANDS = _env.int("WAYMARK_ERRANDS", default=8)
WAYMARK_HOT_POOL = _env.int("WAYMARK_HOT_POOL", default=16)

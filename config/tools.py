"""The settings of tools. Part of `config.settings`."""

from config.environment import Env

_env = Env()

# Calls of one reply at the same time; seconds that a stopped one may take to end; days that one waits for approval.
WAYMARK_PARALLEL_TOOLS = _env.int("WAYMARK_PARALLEL_TOOLS", default=8)
WAYMARK_STOP_GRACE_SECONDS = _env.float("WAYMARK_STOP_GRACE_SECONDS", default=1)
WAYMARK_APPROVAL_DAYS = _env.float("WAYMARK_APPROVAL_DAYS", default=30)
# After so many approvals in a row, none undone, a tool may be allowed without asking, for so many days (mission H6).
WAYMARK_TRUST_AFTER = _env.int("WAYMARK_TRUST_AFTER", default=5)
WAYMARK_TRUST_DAYS = _env.float("WAYMARK_TRUST_DAYS", default=30)

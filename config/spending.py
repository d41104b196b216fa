"""The settings of budgets. Part of `config.settings`."""

from django.core.exceptions import ImproperlyConfigured

from config.environment import Env

_env = Env()

# Budgets (mission C5). Output of a call that is reserved, and the least that is worth asking for, in tokens; what work
# that nobody waits for may use of a budget; from when on its user is warned; how long a run waits for what others hold.
WAYMARK_MOST_OUTPUT_TOKENS = _env.int("WAYMARK_MOST_OUTPUT_TOKENS", default=16_000)
WAYMARK_LEAST_OUTPUT_TOKENS = _env.int("WAYMARK_LEAST_OUTPUT_TOKENS", default=2_000)
WAYMARK_BUDGET_UNATTENDED_SHARE = _env.float("WAYMARK_BUDGET_UNATTENDED_SHARE", default=0.9)
WAYMARK_BUDGET_WARN_SHARE = _env.float("WAYMARK_BUDGET_WARN_SHARE", default=0.8)
WAYMARK_BUDGET_PATIENCE_SECONDS = _env.float("WAYMARK_BUDGET_PATIENCE_SECONDS", default=30)
for _name in ("WAYMARK_BUDGET_UNATTENDED_SHARE", "WAYMARK_BUDGET_WARN_SHARE"):
    if not 0 < globals()[_name] <= 1:
        raise ImproperlyConfigured(f"{_name} is a share: more than 0 and at most 1.")
# What becomes of a model without a price under a budget in dollars: block or allow.
WAYMARK_BUDGET_UNPRICED = _env.str("WAYMARK_BUDGET_UNPRICED", default="block")
if WAYMARK_BUDGET_UNPRICED not in ("block", "allow"):
    raise ImproperlyConfigured("WAYMARK_BUDGET_UNPRICED is block or allow.")

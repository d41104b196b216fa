"""The numbers of our advisory locks, in one place so that no two are alike.

7_301_003, with a user's id, is that of `memory_has_slot` (migration memory 0006): who decides about a user's slots.
"""

TICK_LOCK = 7_301_001
"""What happens by the clock, by one worker at a time."""

HEALTH_LOCK = 7_301_002
"""The health monitor, one at a time."""

QUOTA_LOCK = 7_301_005
"""With a user's id: one upload of a user after the other."""

TEXT_LOCK = 7_301_006
"""With a user's id: what is written for a user, one text after the other."""

OWNER_LOCK = 7_301_004
"""The first person makes the owner's account."""

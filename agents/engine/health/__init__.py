"""What is out of order, found every few minutes and put right (mission B6).

Whatever the engine does keeps these things in order by itself; the monitor is for what crashes, old versions and hands
in the database leave behind.
"""

from agents.engine.health.monitor import CHECKS, examine, run_if_due

__all__ = ["CHECKS", "examine", "run_if_due"]

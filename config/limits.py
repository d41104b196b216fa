"""How much and how long agents may, and when what is out of order is put right. Part of `config.settings`."""

from django.core.exceptions import ImproperlyConfigured

from config.environment import Env

_env = Env()
_DEBUG = _env.bool("WAYMARK_DEBUG", default=False)

# Limits of one run (mission B1). Same tool: without anything new. Failures: replies in a row whose calls all failed.
WAYMARK_MAX_ITERATIONS = _env.int("WAYMARK_MAX_ITERATIONS", default=20)
WAYMARK_MAX_SECONDS = _env.float("WAYMARK_MAX_SECONDS", default=600)
WAYMARK_MAX_SAME_TOOL = _env.int("WAYMARK_MAX_SAME_TOOL", default=5)
WAYMARK_MAX_FAILURES = _env.int("WAYMARK_MAX_FAILURES", default=5)
WAYMARK_MAX_TASKS_PER_MESSAGE = _env.int("WAYMARK_MAX_TASKS_PER_MESSAGE", default=10)
# How many calls of its model a check-in may take, and after how many hours without a word an agent looks in: soon after
# its user was there, within a week of that, and later (mission A12).
WAYMARK_CHECK_IN_CALLS = _env.int("WAYMARK_CHECK_IN_CALLS", default=3)
WAYMARK_HEARTBEAT_HOURS = _env.list("WAYMARK_HEARTBEAT_HOURS", cast=float, default=[12, 48, 120])
# How many calls of its model a feed may take (mission A13).
WAYMARK_FEED_CALLS = _env.int("WAYMARK_FEED_CALLS", default=5)
# After how many hours a feed is tried again whose model was away, and then again, as long as that is on its day.
WAYMARK_FEED_RETRY_HOURS = _env.list("WAYMARK_FEED_RETRY_HOURS", cast=float, default=[1, 2, 4])
# After so many check-ins in a row without progress the strategy of a measured goal is reviewed (mission H1).
WAYMARK_FLAT_CHECK_INS = _env.int("WAYMARK_FLAT_CHECK_INS", default=4)
WAYMARK_TASK_ITERATIONS = _env.int("WAYMARK_TASK_ITERATIONS", default=20)
WAYMARK_TASK_WAIT_MINUTES = _env.float("WAYMARK_TASK_WAIT_MINUTES", default=30)
WAYMARK_TASK_HISTORY_ENTRIES = _env.int("WAYMARK_TASK_HISTORY_ENTRIES", default=20)
# Runs of one user at work at once, and in the queue; 0 sets no limit.
WAYMARK_MAX_RUNNING_PER_USER = _env.int("WAYMARK_MAX_RUNNING_PER_USER", default=2)
WAYMARK_MAX_QUEUED_PER_USER = _env.int("WAYMARK_MAX_QUEUED_PER_USER", default=20)
# Of one user at once in one web process: requests (half of its threads), and pages and devices that follow agents.
WAYMARK_REQUESTS_PER_USER = _env.int("WAYMARK_REQUESTS_PER_USER", default=12)
WAYMARK_VIEWERS_PER_USER = _env.int("WAYMARK_VIEWERS_PER_USER", default=50)
# Messages that may wait for one agent (0: any number), and calls of one reply.
WAYMARK_MAX_WAITING_MESSAGES = _env.int("WAYMARK_MAX_WAITING_MESSAGES", default=20)
WAYMARK_MAX_CALLS = _env.int("WAYMARK_MAX_CALLS", default=64)
WAYMARK_MESSAGE_LENGTH = _env.int("WAYMARK_MESSAGE_LENGTH", default=100_000)
WAYMARK_OBSERVATION_LENGTH = _env.int("WAYMARK_OBSERVATION_LENGTH", default=20_000)

# Sessions (mission B7, B8): archived when idle, cut when longer than so many tokens; how long a summary may take in
# seconds, how much of a session it reads in characters, and after how many failures one is made without a model.
WAYMARK_SESSION_IDLE_MINUTES = _env.float("WAYMARK_SESSION_IDLE_MINUTES", default=30)
WAYMARK_SESSION_TOKENS = _env.int("WAYMARK_SESSION_TOKENS", default=80_000)
WAYMARK_SUMMARY_SECONDS = _env.float("WAYMARK_SUMMARY_SECONDS", default=120)
WAYMARK_SUMMARY_INPUT_LENGTH = _env.int("WAYMARK_SUMMARY_INPUT_LENGTH", default=24_000)
WAYMARK_SUMMARY_TRIES = _env.int("WAYMARK_SUMMARY_TRIES", default=3)
# How much one agent keeps in mind (mission E1): sentences.
WAYMARK_LEARNINGS = _env.int("WAYMARK_LEARNINGS", default=50)
# Documents (missions E1, D3): how long one may be, how much of each an agent is told, both in characters; and the daily
# notes of how many days.
WAYMARK_DOCUMENT_LENGTH = _env.int("WAYMARK_DOCUMENT_LENGTH", default=50_000)
WAYMARK_DOCUMENT_TOLD = _env.int("WAYMARK_DOCUMENT_TOLD", default=6_000)
WAYMARK_DAILY_NOTE_DAYS = _env.int("WAYMARK_DAILY_NOTE_DAYS", default=3)
# Skills (mission E1): how many of one user; how long a SKILL.md may be, which an agent reads at once (characters); how
# much is uploaded, and how much that may be unpacked (bytes); how many files.
WAYMARK_SKILLS = _env.int("WAYMARK_SKILLS", default=30)
WAYMARK_SKILL_LENGTH = _env.int("WAYMARK_SKILL_LENGTH", default=18_000)
WAYMARK_SKILL_BYTES = _env.int("WAYMARK_SKILL_BYTES", default=1_048_576)
WAYMARK_SKILL_UNPACKED_BYTES = _env.int("WAYMARK_SKILL_UNPACKED_BYTES", default=2_000_000)
WAYMARK_SKILL_FILES = _env.int("WAYMARK_SKILL_FILES", default=100)
# What is kept of one user's notes, documents, skills and learnings, with what they said before (bytes), and how many
# goals they may have, each of which brings files, times and measurements of its own; 0 sets no limit.
WAYMARK_TEXT_QUOTA = _env.int("WAYMARK_TEXT_QUOTA", default=1_073_741_824)
WAYMARK_GOALS = _env.int("WAYMARK_GOALS", default=500)
# What of a request is no file; a skill that is to replace another comes in base64, after it was asked about. Bytes.
DATA_UPLOAD_MAX_MEMORY_SIZE = max(2_000_000, WAYMARK_SKILL_BYTES * 3 // 2)

# Staff are warned when less is free on a disk that Waymark writes to. Bytes.
WAYMARK_DISK_LOW = _env.int("WAYMARK_DISK_LOW", default=2_000_000_000)

# The health monitor (mission B6): how often it looks, and what is too long.
WAYMARK_HEALTH_MINUTES = _env.float("WAYMARK_HEALTH_MINUTES", default=5)
WAYMARK_HEALTH_BATCH = _env.int("WAYMARK_HEALTH_BATCH", default=200)
WAYMARK_HEALTH_KEPT_DAYS = _env.float("WAYMARK_HEALTH_KEPT_DAYS", default=7)
WAYMARK_STUCK_MINUTES = _env.float("WAYMARK_STUCK_MINUTES", default=30)
WAYMARK_STALE_GOAL_HOURS = _env.float("WAYMARK_STALE_GOAL_HOURS", default=3 if _DEBUG else 6)
WAYMARK_STALE_TASK_HOURS = _env.float("WAYMARK_STALE_TASK_HOURS", default=1 if _DEBUG else 2)
WAYMARK_TASK_PAUSE_HOURS = _env.float("WAYMARK_TASK_PAUSE_HOURS", default=24)
WAYMARK_TASK_KEPT_DAYS = _env.float("WAYMARK_TASK_KEPT_DAYS", default=15)

# How long staff can look at what calls of models were sent, after it was sent last; 0 is for ever. By default as long
# as a call waits for approval: until then somebody may ask what its agent had been told.
WAYMARK_PROMPTS_KEPT_DAYS = _env.int("WAYMARK_PROMPTS_KEPT_DAYS", default=30)
if WAYMARK_PROMPTS_KEPT_DAYS < 0:
    raise ImproperlyConfigured("WAYMARK_PROMPTS_KEPT_DAYS is at least 1, or 0 for ever.")

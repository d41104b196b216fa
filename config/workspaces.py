"""The settings of agents' files and of the commands that they run. Part of `config.settings`."""

from config.environment import Env

_env = Env()

# What the workspace of one agent may hold: bytes, files with their folders, and bytes of a single file that comes from
# a browser or a device. Of what was there before a change as many bytes are kept for an undo; the oldest go first.
WAYMARK_WORKSPACE_BYTES = _env.int("WAYMARK_WORKSPACE_BYTES", default=200_000_000)
WAYMARK_WORKSPACE_FILES = _env.int("WAYMARK_WORKSPACE_FILES", default=5_000)
WAYMARK_WORKSPACE_UPLOAD = _env.int("WAYMARK_WORKSPACE_UPLOAD", default=10_000_000)
WAYMARK_WORKSPACE_KEPT = _env.int("WAYMARK_WORKSPACE_KEPT", default=500_000_000)

# Bytes that stay free on the disk of the workspaces, for the database that may lie there as well.
WAYMARK_DISK_RESERVE = _env.int("WAYMARK_DISK_RESERVE", default=1_000_000_000)

# Commands (threat T13), by the words that they begin with; * and ? stand for parts of a word. What is forbidden comes
# first, then what is restricted, then what is allowed; whatever is none of these is restricted: each call asks.
WAYMARK_COMMANDS_ALLOWED: list[str] = _env.list(
    "WAYMARK_COMMANDS_ALLOWED",
    default=["ls", "cat", "head", "tail", "wc", "grep", "diff", "du", "file", "sha256sum", "ruff check"],
)
WAYMARK_COMMANDS_RESTRICTED: list[str] = _env.list(
    "WAYMARK_COMMANDS_RESTRICTED", default=["python*", "pytest", "pip*", "sh", "bash", "node", "perl", "env", "xargs"]
)
WAYMARK_COMMANDS_FORBIDDEN: list[str] = _env.list(
    "WAYMARK_COMMANDS_FORBIDDEN", default=["sudo", "su", "doas", "ssh", "scp", "mount", "umount", "nsenter", "unshare"]
)
# One command: how long it may take, the processor time of each of its processes (seconds), the memory of all together
# (bytes), how many processes there may be at once, and how large one of its files may grow (bytes).
WAYMARK_COMMAND_SECONDS = _env.float("WAYMARK_COMMAND_SECONDS", default=60)
WAYMARK_COMMAND_CPU_SECONDS = _env.int("WAYMARK_COMMAND_CPU_SECONDS", default=60)
WAYMARK_COMMAND_MEMORY = _env.int("WAYMARK_COMMAND_MEMORY", default=1_000_000_000)
WAYMARK_COMMAND_PROCESSES = _env.int("WAYMARK_COMMAND_PROCESSES", default=64)
WAYMARK_COMMAND_FILE = _env.int("WAYMARK_COMMAND_FILE", default=64_000_000)
# Folders with programs for commands beside the system's own (a venv with pytest and ruff); they see them read-only.
WAYMARK_COMMAND_FOLDERS: list[str] = _env.list("WAYMARK_COMMAND_FOLDERS", default=[])
# As whom commands run when the worker is root: a user id that nothing else has. How often the sandbox is tried.
WAYMARK_SANDBOX_UID = _env.int("WAYMARK_SANDBOX_UID", default=65_530)
WAYMARK_SANDBOX_CHECK_MINUTES = _env.float("WAYMARK_SANDBOX_CHECK_MINUTES", default=10)

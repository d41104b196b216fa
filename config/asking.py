"""The settings of how models are asked, and asked again. Part of `config.settings`."""

from config.environment import Env

_env = Env()

# A model that fails is asked again (docs/reliability.md "When the model fails"): first under the lease, then after
# longer waits, each twice as long as the last. A vendor that asks for more than the longest ends the run. Seconds.
WAYMARK_RETRY_HELD_TRIES = _env.int("WAYMARK_RETRY_HELD_TRIES", default=2)
WAYMARK_RETRY_HELD_SECONDS = _env.float("WAYMARK_RETRY_HELD_SECONDS", default=1.5)
WAYMARK_RETRY_HELD_LONGEST = _env.float("WAYMARK_RETRY_HELD_LONGEST", default=10)
WAYMARK_RETRY_FIRST_SECONDS = _env.float("WAYMARK_RETRY_FIRST_SECONDS", default=10)
WAYMARK_RETRY_LONGEST_SECONDS = _env.float("WAYMARK_RETRY_LONGEST_SECONDS", default=900)
WAYMARK_RETRY_RATE_LIMIT_TRIES = _env.int("WAYMARK_RETRY_RATE_LIMIT_TRIES", default=5)
WAYMARK_RETRY_NETWORK_TRIES = _env.int("WAYMARK_RETRY_NETWORK_TRIES", default=3)
WAYMARK_RETRY_OTHER_TRIES = _env.int("WAYMARK_RETRY_OTHER_TRIES", default=2)
# How long a model may say nothing before its call is given up (and repeated as above): nothing at all on the wire, of
# servers that load a model first, and nothing but signs of life. Seconds.
WAYMARK_MODEL_IDLE_SECONDS = _env.float("WAYMARK_MODEL_IDLE_SECONDS", default=120)
WAYMARK_SLOW_MODEL_IDLE_SECONDS = _env.float("WAYMARK_SLOW_MODEL_IDLE_SECONDS", default=600)
WAYMARK_MODEL_SILENT_SECONDS = _env.float("WAYMARK_MODEL_SILENT_SECONDS", default=600)
# Ollama: tokens of context to ask for when nothing else says it, and for how long a model stays loaded after a call.
WAYMARK_OLLAMA_CONTEXT = _env.int("WAYMARK_OLLAMA_CONTEXT", default=16_384)
WAYMARK_OLLAMA_KEEP_SECONDS = _env.int("WAYMARK_OLLAMA_KEEP_SECONDS", default=1_800)
# Characters of one reply of a model, text and calls together; an answer is drawn again and again while it is written.
WAYMARK_ANSWER_LENGTH = _env.int("WAYMARK_ANSWER_LENGTH", default=200_000)

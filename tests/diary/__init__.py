"""A kind of agent that is not Waymark's own, made by docs/new-agent-kind.md and nothing else (mission A5)."""

"""What makes an agent run.

To read it, follow one run: `jobs` (what a bell sets off), `assemble` (who is to work, and with what), `orchestrator`
(claim → recover → drive → settle), `loop` (think, act, repeat; plain Python), `steps` with `record` and `gates` (what
becomes of each reply's calls), `journal/` (every durable point, one SQL statement each), `thinking` and `retries` (the
model, and what is done when it fails), `recovery` (what a crash or a decision has left open), `settle` (how runs end).
Around it stand `worker`, `leases`, `errands`, `sweeper`, `clock` and `health/`, and for sessions `archiving`,
`summaries` and `shortening`. What must hold is in docs/reliability.md.

Ten words:
    Summons: what a run needs to be worked on, read before it is claimed: kind, model, prompt, tools.
    Lease: the right to work on a run; its token is in every write. Its Progress says how far the run has come.
    Held: a lease in this process, with the moment up to which its holder may act, and the token that stops it.
    Attempt: a call as its model asked for it, validated (`tools.attempts`).
    Call: an attempt on its way through a run: its places in thread and history, what it waits for, what it came to.
    Result: what a call came to, as the model is told. As a row all of this is an AgentAction (`tools.models`).
    Gate: the approval that a call needs. A run whose calls wait for theirs is Parked: nobody's, without a lease.
    Settled: what a model call came to, used and cost.
    Ending: what a run ended as, or waits for, with the last words; D8 commits it.
    Pulse: what each fenced statement brings back: whether to stop, whether messages wait, and more.
"""

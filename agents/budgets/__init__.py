"""Money and tokens that cannot be overspent (mission C5, invariant I17).

A budget is a row that says how much may be spent in a window of time, by a user, a goal, a task or in one run, and how
much of it is spent and reserved. Before a model is asked, the worst that the call may come to is reserved in every
budget that holds it; what is left of that serves the run's next calls. What was spent is booked when the run lets go.

- `windows`: the models' figures, and when a window begins.
- `ledger`: the transactions: reserve, book, release.
- `books`: the statements that these are made of.
- `worst`: what a call may come to at most.
- `purse`: what a run carries with it, and asks before each call.
- `services`: what people do with budgets.
"""

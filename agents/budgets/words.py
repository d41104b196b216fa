"""What people are told of budgets."""

from decimal import Decimal

from agents.budgets.models import Budget, Window
from agents.budgets.room import OutOfBudget


def limits_of(budget: Budget) -> str:
    """Say how much a budget allows, such as "$20.00 a month" or "500,000 tokens in each run"."""
    money = "" if budget.money is None else amount_of(budget.money)
    tokens = "" if budget.tokens is None else f"{budget.tokens:,} tokens"
    whens = {Window.RUN: "in each run", Window.DAY: "a day", Window.MONTH: "a month", Window.TOTAL: "in total"}
    more = f", and {amount_of(budget.extra)} more for now" if budget.extra else ""
    return f"{' and '.join(filter(None, (money, tokens)))} {whens[Window(budget.window)]}{more}"


def amount_of(money: Decimal) -> str:
    """Say dollars to the cent, or as exactly as budgets are set when they are less than ten."""
    return f"${money:,.2f}" if money == 0 or money >= Decimal("0.1") else f"${money:.4f}"


def whose(budget: Budget) -> str:
    return "Your budget" if budget.thread_id is None else "The budget here"


def paused(out: OutOfBudget) -> str:
    """Why a run waits, and until when."""
    shortage = out.shortage
    left, least = shortage.left, shortage.least
    if left.money < least.money:
        state = "is left" if left.money >= 0 else "more than that is spent or held"
        why = f"{amount_of(abs(left.money))} {state}, and it may cost up to {amount_of(least.money)}."
    else:
        why = f"{max(left.tokens, 0):,} tokens are left, and it may take up to {least.tokens:,}."
    said = f"{whose(shortage.budget)} of {limits_of(shortage.budget)} does not allow another call of the model: {why}"
    if shortage.waits:
        return f"{said} Other work holds what is left of it; I look again soon."
    if not shortage.budget.counts:
        return f"{said} Raise the limit, or stop me here: what you write then begins a run of its own."
    if shortage.until is not None:
        return f"{said} I go on when it begins anew, or when you allow more."
    return f"{said} I go on when you allow more."


def most_is_spent(budget: Budget, share: float) -> str:
    return f"{whose(budget)} of {limits_of(budget)} is {share:.0%} spent."


def unpriced(model: str) -> str:
    return (
        f"Nobody has said what a call of {model} costs, so your budget in dollars could not hold. "
        "Say what it costs, or that it costs nothing, as on a server of your own."
    )

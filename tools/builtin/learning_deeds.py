"""How the record speaks of what people do to the learnings of their agents (`tools.learnings`), and of what they have
them forget (`tools.forgetting`)."""

from tools.base import Wording
from tools.deeds import Deed


class TellLearning(Deed):
    name = "tell_learning"
    wording = Wording(
        "bookmark",
        "Give the agent to learn",
        "Giving the agent to learn",
        "Had the agent learn",
        "Could not have the agent learn",
    )


class CorrectLearning(Deed):
    name = "correct_learning"
    wording = Wording(
        "pencil-line",
        "Correct a learning",
        "Correcting a learning",
        "Corrected a learning",
        "Could not correct a learning",
    )


class TakeBackLearning(Deed):
    name = "take_back_learning"
    wording = Wording(
        "trash-2",
        "Take a learning back",
        "Taking a learning back",
        "Took a learning back",
        "Could not take a learning back",
    )


class ForgetSource(Deed):
    name = "forget_source"
    wording = Wording(
        "trash-2",
        "Forget what came of",
        "Forgetting what came of",
        "Forgot what came of",
        "Could not forget what came of",
    )

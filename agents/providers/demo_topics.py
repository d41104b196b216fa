"""What the demonstration knows of the world: a few checklists, and one that fits anything."""

import re
from typing import NamedTuple

type Section = tuple[str, tuple[str, ...]]


class Topic(NamedTuple):
    """`words` is a pattern that finds the topic in a request; `sections` are headings with their items."""

    words: str
    sections: tuple[Section, ...]


_RACE: tuple[Section, ...] = (
    (
        "Gear",
        (
            "Running shoes that you have already run 50 km or more in",
            "Socks, shorts and top that do not chafe: tested on a long run",
            "A light layer, a cap and sun cream; a bin bag to keep warm at the start",
            "Watch or phone for the pace, charged the evening before",
            "Petroleum jelly and plasters against blisters",
        ),
    ),
    (
        "Training",
        (
            "Three or four runs a week for 10 to 12 weeks, most of them easy enough to talk",
            "One long run a week that grows until three weeks before: 18 km for a half marathon, 30 for a whole",
            "One run a week at the pace you want to race at",
            "An easier week every fourth week, and two lighter weeks before the race",
        ),
    ),
    (
        "Food and drink",
        (
            "Try gels and drinks on long runs first: nothing new on race day",
            "Breakfast about three hours before the start, light and familiar",
            "Drink a little at every station; with more than 90 minutes, eat something every 30 to 40",
        ),
    ),
    (
        "Organisation",
        (
            "Entry confirmed, start number and pick-up times noted",
            "Travel and a place to sleep, with an hour to spare before the start",
            "Medical certificate if the race asks for one",
            "Someone to meet at the finish, and dry clothes in the bag",
        ),
    ),
    (
        "When",
        (
            "12 weeks before: the plan begins, shoes are bought",
            "3 weeks before: the longest run; the kit is final",
            "Race week: short and easy runs, sleep, lay everything out the evening before",
        ),
    ),
)


_TRAVEL: tuple[Section, ...] = (
    (
        "Papers and money",
        (
            "Passport or identity card: valid long enough, and a copy of it",
            "Tickets, bookings and insurance, also offline on the phone",
            "Two cards kept apart, and a little cash",
        ),
    ),
    (
        "Pack",
        (
            "Clothes for the weather, one set more than days between washes",
            "Medicines in the hand luggage, with the prescription",
            "Charger, adapter, power bank, headphones",
            "Toiletries, sun cream, a small first-aid kit",
        ),
    ),
    (
        "Before leaving",
        (
            "Check in, and look up the way to the first night's bed",
            "Tell the bank and someone at home where you are going",
            "Empty the fridge, water the plants, turn things off",
        ),
    ),
)


_MOVE: tuple[Section, ...] = (
    (
        "Eight to four weeks before",
        (
            "Give notice on the old home, sign for the new one",
            "Book a van or movers, and friends with strong arms",
            "Sort out: sell, give away, throw away",
            "Cancel or transfer electricity, internet and insurance",
        ),
    ),
    (
        "The last weeks",
        (
            "Boxes, tape and markers; label each box with its room",
            "Change of address: post, bank, employer, authorities",
            "Measure doors and big furniture",
        ),
    ),
    (
        "The day itself",
        (
            "A bag with what you need the first night",
            "Photos of the empty rooms and of all meters",
            "Hand over the keys, and have it confirmed in writing",
        ),
    ),
)


_INTERVIEW: tuple[Section, ...] = (
    (
        "Prepare",
        (
            "Read the advertisement again and match each demand with something you did",
            "Three stories with situation, action and result",
            "What the company does, who is its customer, what was in the news",
            "Five questions of your own",
        ),
    ),
    (
        "Bring",
        ("CV and certificates, printed", "Address, names and phone number", "Paper and a pen", "Clothes tried on"),
    ),
    (
        "Afterwards",
        ("Write down what was asked", "A short thank-you the same day", "A date by which you ask again"),
    ),
)


_PARTY: tuple[Section, ...] = (
    (
        "Decide first",
        ("Date, and one that would do as well", "How many guests", "Where, and what if it rains", "Budget"),
    ),
    (
        "Food and drink",
        (
            "Something for those who eat no meat and those with allergies",
            "About three drinks a head for the first two hours, one without alcohol",
            "Ice, cups, plates, napkins",
        ),
    ),
    (
        "Around it",
        (
            "Invitations four weeks ahead, with a date to answer by",
            "Music, light, seats",
            "Someone who takes pictures, someone who helps to clean up",
        ),
    ),
)


_LEARNING: tuple[Section, ...] = (
    (
        "Aim",
        (
            "One sentence: what you will be able to do, and by when",
            "A first small result that can be reached in two weeks",
        ),
    ),
    (
        "Plan",
        (
            "Twenty minutes a day beat three hours on Sunday",
            "One main course or book, not five",
            "Half of the time is practice: speaking, building, playing",
            "Repeat after one day, one week, one month",
        ),
    ),
    (
        "Keep going",
        (
            "A fixed place and time of day",
            "Someone to practise with or to show it to",
            "A short look back every Sunday: what worked, what is next",
        ),
    ),
)


_MEETING: tuple[Section, ...] = (
    (
        "Before",
        (
            "What should be decided or known at the end, in one sentence",
            "Who must be there, and who only needs the result",
            "Agenda with minutes for each point, sent a day ahead",
        ),
    ),
    (
        "During",
        (
            "Someone writes down decisions, with who does what until when",
            "Open questions go to a list",
            "End on time",
        ),
    ),
    ("After", ("The decisions go to everyone the same day", "A date on which the promises are looked at")),
)


_ANYTHING: tuple[Section, ...] = (
    (
        "The aim",
        ("What should be true when this is done?", "How will you know that it is good enough?", "By when?"),
    ),
    (
        "What is needed",
        (
            "Things: what is there already, what must be bought or borrowed",
            "People: who decides, who helps, who has to know",
            "Money and time: a rough figure for each, and a reserve of a fifth",
        ),
    ),
    (
        "Steps",
        (
            "The smallest step that can be done today",
            "What has to be booked or ordered early",
            "The part that is most likely to go wrong, and what you would do then",
            "A date to look at all this again",
        ),
    ),
)


_TOPICS = (
    Topic(r"marathon|\b(?:5|10)\s?k\b|\brace\b|\brun(?:ning)?\b", _RACE),
    Topic(r"trip|travel|holiday|vacation|journey|flight|packing|\bpack\b|weekend in", _TRAVEL),
    Topic(r"mov(?:e|ing) (?:house|flat|home|to|into)|\bmove\b|new (?:flat|apartment|home)", _MOVE),
    Topic(r"interview|application", _INTERVIEW),
    Topic(r"party|birthday|wedding|celebrat|dinner", _PARTY),
    Topic(r"learn|study|studying|course|exam|practi[sc]e", _LEARNING),
    Topic(r"meeting|presentation|workshop|talk\b", _MEETING),
)


def sections_for(subject: str) -> tuple[Section, ...]:
    """Return the checklist that fits `subject`, or the general one."""
    fitting = (topic.sections for topic in _TOPICS if re.search(topic.words, subject, re.I))
    return next(fitting, _ANYTHING)


def checklist(subject: str) -> str:
    """Return the checklist for `subject` in Markdown."""
    parts = ["A list to start from: tick what is done, strike what you do not need."]
    for heading, items in sections_for(subject):
        parts.append(f"## {heading}\n\n" + "\n".join(f"- [ ] {item}" for item in items))
    return "\n\n".join(parts)

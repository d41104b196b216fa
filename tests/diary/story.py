"""A diary is opened, and two messages go through the unchanged engine; run as a program, with the address of a model's
server. Prints what came of it as JSON."""

import json
import sys

import django
from django.core.management import call_command

django.setup()

from django.contrib.auth.models import User
from django.test import Client

from agents import services
from agents.agentable import agentable_of
from agents.engine import bell, jobs
from memory.models import AgentRun, Note, ThreadMessage
from tests.diary.models import Diary
from tests.factories import think_with


def main(llm: str) -> None:
    call_command("migrate", verbosity=0)
    call_command("check", fail_level="WARNING")
    bell.ring = lambda run_id: True
    user = User.objects.create_user("ada", "ada@example.org", "a long enough pass phrase")
    think_with(user, llm)
    diary = Diary.objects.create(user=user, thread=services.open_thread(user, Diary.kind()), title="Ada's days")
    assert agentable_of(diary.thread) == diary
    for text in ("Today I saw a fox", "And it rained"):
        accepted = services.send_message(diary.thread, text)
        jobs.run(str(accepted.run_id))
    assistant = services.assistant_of(user)
    assistant.welcomed = True
    assistant.save()
    client = Client(SERVER_NAME="localhost")
    client.force_login(user)
    pages = {
        path: client.get(path).text for path in ("/", "/since/", "/activity/", "/jobs/", "/notes/", "/search/?q=fox")
    }
    job = client.get(f"/jobs/{AgentRun.objects.earliest('created_at').pk}/")
    told = ThreadMessage.objects.filter(thread=diary.thread, source="agent", message_type="text").order_by("position")
    print(
        json.dumps(
            {
                "runs": list(AgentRun.objects.order_by("created_at").values_list("status", flat=True)),
                "notes": list(Note.objects.filter(thread=diary.thread).values_list("title", flat=True)),
                "named": [path for path, page in pages.items() if "Ada&#x27;s days" in page],
                "deleted": [path for path, page in pages.items() if "A deleted agent" in page],
                "job": job.headers["Location"].partition("#")[0],
                "said": list(told.values_list("content", flat=True)),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])

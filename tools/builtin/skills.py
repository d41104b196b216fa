"""What the agent reads of its user's skills (mission E1)."""

from pydantic import Field

from memory.models import Skill
from memory.skill_files import manifest
from memory.skills import usable
from memory.text import clip
from tools.base import Arguments, Audience, Needs, Outcome, Tool, ToolContext, ToolError, Topic, Wording


class Reading(Arguments):
    name: str = Field(max_length=Skill.NAME_LENGTH, description="As <skills> gives it.")
    file: str = Field("", max_length=200, description="A file of the skill; leave it out to read the skill itself.")


class ReadSkill(Tool[Reading]):
    name = "read_skill"
    topic = Topic.NOTES
    description = "Read a skill before you do what it is for, or a file that it names."
    wording = Wording("bookmark", "Read a skill", "Reading a skill", "Read a skill", "Could not read the skill")
    audience = frozenset({Audience.CONVERSATION})
    needs = Needs.SKILLS
    Arguments = Reading

    def subject(self, arguments: Reading) -> str:
        return clip(" · ".join(filter(None, [arguments.name, arguments.file])), 80)

    def run(self, arguments: Reading, context: ToolContext) -> Outcome:
        skill = usable(context.user_id, context.thread_id, arguments.name)
        if skill is None:
            raise ToolError("There is no such skill; <skills> lists those that there are.")
        beside_it = skill.files.filter(skill__is_on=True)  # not of one that has taken its place since
        if not arguments.file:
            files = "\n".join(f"- {file.path}" for file in beside_it.defer("content"))
            beside = f"\n\nFiles of this skill, which read_skill reads, too:\n{files}" if files else ""
            return Outcome(manifest(skill.text).body + beside, skill.name)
        file = beside_it.filter(path=arguments.file).first()
        if file is None:
            raise ToolError("The skill has no such file; without `file` you see which it has.")
        if file.text is None:
            raise ToolError("This file is no text.")
        return Outcome(file.text or "(empty)", clip(f"{skill.name} · {file.path}", 80))

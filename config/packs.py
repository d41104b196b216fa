"""The tools of packs that a person may switch on for a goal (mission D11). Part of `config.settings`."""

REFLECTIVE_TOOLS = [
    "tools.builtin.parts.SearchParts",
    "tools.builtin.parts.CreateEmergingPart",
    "tools.builtin.parts.UpdatePartAttributes",
    "tools.builtin.parts.GetPartDetails",
    "tools.builtin.parts.AddEvidence",
    "tools.builtin.parts.ListEvidence",
    "tools.builtin.part_records.CreateAssessment",
    "tools.builtin.part_records.ListAssessments",
    "tools.builtin.part_records.CreateProposal",
    "tools.builtin.part_records.UpdateProposal",
    "tools.builtin.part_records.ListProposals",
    "tools.builtin.part_deeds.ConfirmPart",
    "tools.builtin.part_deeds.AcceptProposal",
    "tools.builtin.part_deeds.DeclineProposal",
    "tools.builtin.part_deeds.DeletePart",
    "tools.builtin.part_deeds.DeleteAssessment",
    "tools.builtin.part_deeds.DeleteProposal",
]
REFLECTIVE_RESTORERS = [
    "tools.part_restoring.PartRestorer",
    "tools.part_restoring.AssessmentRestorer",
    "tools.part_restoring.ProposalRestorer",
]

# What people do by hand to times, targets and measurements: words for the record alone.
DEEDS_ON_GOALS = [
    f"goals.deed_words.{name}"
    for name in (
        *("SetTime", "ChangeTime", "PauseTime", "ResumeTime", "DeleteTime"),
        *("SetTarget", "DropTarget", "AddMeasurements", "DeleteMeasurement"),
    )
]

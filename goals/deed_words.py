"""How the record speaks of what people do to times, targets and measurements (`goals.deeds`)."""

from tools.base import Wording
from tools.deeds import Deed


class SetTime(Deed):
    name = "set_time"
    wording = Wording("clock", "Set a time", "Setting a time", "Set a time", "Could not set a time")


class ChangeTime(Deed):
    name = "change_time"
    wording = Wording("clock", "Change a time", "Changing a time", "Changed a time", "Could not change a time")


class PauseTime(Deed):
    name = "pause_time"
    wording = Wording("pause", "Pause a time", "Pausing a time", "Paused a time", "Could not pause a time")


class ResumeTime(Deed):
    name = "resume_time"
    wording = Wording("rotate-cw", "Resume a time", "Resuming a time", "Resumed a time", "Could not resume a time")


class DeleteTime(Deed):
    name = "delete_time"
    wording = Wording("trash-2", "Delete a time", "Deleting a time", "Deleted a time", "Could not delete a time")


class SetTarget(Deed):
    name = "set_target"
    wording = Wording("flag", "Set a target", "Setting a target", "Set a target", "Could not set a target")


class DropTarget(Deed):
    name = "drop_target"
    wording = Wording("trash-2", "Drop a target", "Dropping a target", "Dropped a target", "Could not drop a target")


class AddMeasurements(Deed):
    name = "add_measurements"
    wording = Wording(
        "bookmark",
        "Write down a measurement",
        "Writing down a measurement",
        "Measured",
        "Could not write down a measurement",
    )


class DeleteMeasurement(Deed):
    name = "delete_measurement"
    wording = Wording(
        "trash-2",
        "Delete a measurement",
        "Deleting a measurement",
        "Deleted a measurement",
        "Could not delete a measurement",
    )

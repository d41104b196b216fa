"""The contract with devices. Addresses have no slash at their end and never change within a version."""

from django.urls import path, re_path

from agents.api.approvals import Approvals, DecideApproval, ResolveAction, UndoAction
from agents.api.attachments import OneAttachment, Thumbnail
from agents.api.base import Nowhere, declared
from agents.api.budgets import Budgets, MoreBudget, OneBudget
from agents.api.devices import Login, Logout
from agents.api.docs import Docs, Schema
from agents.api.documents import AssistantDocuments, Documents, DocumentVersions, OneDocument, RestoreDocument
from agents.api.forgetting import DocumentReliedOn, MessageReliedOn, NoteReliedOn, SessionReliedOn
from agents.api.learnings import AssistantLearnings, OneLearning
from agents.api.mcp import AcceptMcpTools, CheckMcpServer, McpServers, OneMcpServer
from agents.api.models import Models
from agents.api.plans import AssistantPlan
from agents.api.prices import OnePrice, Prices
from agents.api.skills import OneSkill, RestoreSkill, Skills, SkillVersions, SkillZip
from agents.api.threads import AssistantEvents, AssistantMessages
from goals.api.actions import Actions
from goals.api.costs import Costs
from goals.api.documents import GoalDocuments
from goals.api.feed import DiscussFeedItem, Feeds, OneFeedItem
from goals.api.files import GoalFile, GoalFiles
from goals.api.goals import GoalEvents, GoalMessages, Goals, OneGoal
from goals.api.learnings import GoalLearnings
from goals.api.measured import GoalMeasurements, GoalTarget, OneMeasurement
from goals.api.notes import GoalNotes, NoteVersions, OneNote, RestoreNote
from goals.api.notices import Notices, OnePushDevice, PushDevices, PushKey, SeenNotice
from goals.api.parts import (
    ConfirmPart,
    DecideProposal,
    GoalAssessments,
    GoalParts,
    GoalProposals,
    OneAssessment,
    OnePart,
    OneProposal,
)
from goals.api.plans import GoalPlan
from goals.api.runs import OneRun, RestartRun, RetryRun, RunActions, Runs, StopRun
from goals.api.schedules import AssistantSchedules, BeginSchedule, GoalSchedules, OneSchedule
from goals.api.search import Search
from goals.api.sessions import GoalSessions, OneSession
from goals.api.undo import UndoGoal, UndoRun
from goals.api.updates import Seen, UpdateEvents, Updates

app_name = "api"

urlpatterns = declared(
    [
        path("auth/login", Login.as_view(), name="login"),
        path("auth/logout", Logout.as_view(), name="logout"),
        path("goals", Goals.as_view(), name="goals"),
        path("goals/<id:goal_id>", OneGoal.as_view(), name="goal"),
        path("goals/<id:goal_id>/messages", GoalMessages.as_view(), name="goal_messages"),
        path("goals/<id:goal_id>/events", GoalEvents.as_view(), name="goal_events"),
        path("goals/<id:goal_id>/notes", GoalNotes.as_view(), name="goal_notes"),
        path("goals/<id:goal_id>/files", GoalFiles.as_view(), name="goal_files"),
        path("goals/<id:goal_id>/files/<path:path>", GoalFile.as_view(), name="goal_file"),
        path("notes/<id:note_id>", OneNote.as_view(), name="note"),
        path("notes/<id:note_id>/versions", NoteVersions.as_view(), name="note_versions"),
        path("notes/<id:note_id>/versions/<id:version_id>/restore", RestoreNote.as_view(), name="note_restore"),
        path("goals/<id:goal_id>/learnings", GoalLearnings.as_view(), name="goal_learnings"),
        path("goals/<id:goal_id>/plan", GoalPlan.as_view(), name="goal_plan"),
        path("learnings/<id:learning_id>", OneLearning.as_view(), name="learning"),
        path("documents", Documents.as_view(), name="documents"),
        path("goals/<id:goal_id>/documents", GoalDocuments.as_view(), name="goal_documents"),
        path("agent/documents", AssistantDocuments.as_view(), name="agent_documents"),
        path("documents/<id:document_id>", OneDocument.as_view(), name="document"),
        path("documents/<id:document_id>/versions", DocumentVersions.as_view(), name="document_versions"),
        path(
            "documents/<id:document_id>/versions/<id:document_version_id>/restore",
            RestoreDocument.as_view(),
            name="document_restore",
        ),
        path("notes/<id:note_id>/relied-on", NoteReliedOn.as_view(), name="note_relied_on"),
        path("documents/<id:document_id>/relied-on", DocumentReliedOn.as_view(), name="document_relied_on"),
        path("sessions/<id:session_id>/relied-on", SessionReliedOn.as_view(), name="session_relied_on"),
        path("messages/<id:message_id>/relied-on", MessageReliedOn.as_view(), name="message_relied_on"),
        path("skills", Skills.as_view(), name="skills"),
        path("skills/<id:skill_id>", OneSkill.as_view(), name="skill"),
        path("skills/<id:skill_id>/versions", SkillVersions.as_view(), name="skill_versions"),
        path(
            "skills/<id:skill_id>/versions/<id:skill_version_id>/restore", RestoreSkill.as_view(), name="skill_restore"
        ),
        path("skills/<id:skill_id>/zip", SkillZip.as_view(), name="skill_zip"),
        path("goals/<id:goal_id>/schedules", GoalSchedules.as_view(), name="goal_schedules"),
        path("agent/schedules", AssistantSchedules.as_view(), name="agent_schedules"),
        path("schedules/<id:schedule_id>", OneSchedule.as_view(), name="schedule"),
        path("schedules/<id:schedule_id>/begin", BeginSchedule.as_view(), name="schedule_begin"),
        path("goals/<id:goal_id>/target", GoalTarget.as_view(), name="goal_target"),
        path("goals/<id:goal_id>/measurements", GoalMeasurements.as_view(), name="goal_measurements"),
        path("measurements/<id:measurement_id>", OneMeasurement.as_view(), name="measurement"),
        path("goals/<id:goal_id>/parts", GoalParts.as_view(), name="goal_parts"),
        path("parts/<id:part_id>", OnePart.as_view(), name="part"),
        path("parts/<id:part_id>/confirm", ConfirmPart.as_view(), name="part_confirm"),
        path("goals/<id:goal_id>/assessments", GoalAssessments.as_view(), name="goal_assessments"),
        path("assessments/<id:assessment_id>", OneAssessment.as_view(), name="assessment"),
        path("goals/<id:goal_id>/proposals", GoalProposals.as_view(), name="goal_proposals"),
        path("proposals/<id:proposal_id>", OneProposal.as_view(), name="proposal"),
        path("proposals/<id:proposal_id>/decide", DecideProposal.as_view(), name="proposal_decide"),
        path("goals/<id:goal_id>/sessions", GoalSessions.as_view(), name="goal_sessions"),
        path("sessions/<id:session_id>", OneSession.as_view(), name="session"),
        path("search", Search.as_view(), name="search"),
        path("feeds", Feeds.as_view(), name="feeds"),
        path("feed-items/<id:item_id>", OneFeedItem.as_view(), name="feed_item"),
        path("feed-items/<id:item_id>/discuss", DiscussFeedItem.as_view(), name="feed_item_discuss"),
        path("updates", Updates.as_view(), name="updates"),
        path("updates/events", UpdateEvents.as_view(), name="updates_events"),
        path("updates/seen", Seen.as_view(), name="updates_seen"),
        path("notices", Notices.as_view(), name="notices"),
        path("notices/<id:notice_id>/seen", SeenNotice.as_view(), name="notice_seen"),
        path("push-key", PushKey.as_view(), name="push_key"),
        path("push-devices", PushDevices.as_view(), name="push_devices"),
        path("push-devices/<id:device_id>", OnePushDevice.as_view(), name="push_device"),
        path("runs", Runs.as_view(), name="runs"),
        path("runs/<id:run_id>", OneRun.as_view(), name="run"),
        path("runs/<id:run_id>/stop", StopRun.as_view(), name="run_stop"),
        path("runs/<id:run_id>/retry", RetryRun.as_view(), name="run_retry"),
        path("runs/<id:run_id>/restart", RestartRun.as_view(), name="run_restart"),
        path("runs/<id:run_id>/undo", UndoRun.as_view(), name="run_undo"),
        path("goals/<id:goal_id>/undo", UndoGoal.as_view(), name="goal_undo"),
        path("runs/<id:run_id>/actions", RunActions.as_view(), name="run_actions"),
        path("costs", Costs.as_view(), name="costs"),
        path("prices", Prices.as_view(), name="prices"),
        path("prices/<id:price_id>", OnePrice.as_view(), name="price"),
        path("attachments/<id:attachment_id>", OneAttachment.as_view(), name="attachment"),
        path("attachments/<id:attachment_id>/thumbnail", Thumbnail.as_view(), name="attachment_thumbnail"),
        path("approvals", Approvals.as_view(), name="approvals"),
        path("approvals/<id:approval_id>/decide", DecideApproval.as_view(), name="approval_decide"),
        path("actions", Actions.as_view(), name="actions"),
        path("actions/<id:action_id>/undo", UndoAction.as_view(), name="action_undo"),
        path("actions/<id:action_id>/resolve", ResolveAction.as_view(), name="action_resolve"),
        path("budgets", Budgets.as_view(), name="budgets"),
        path("budgets/<id:budget_id>", OneBudget.as_view(), name="budget"),
        path("budgets/<id:budget_id>/more", MoreBudget.as_view(), name="budget_more"),
        path("agent/messages", AssistantMessages.as_view(), name="agent_messages"),
        path("agent/learnings", AssistantLearnings.as_view(), name="agent_learnings"),
        path("agent/plan", AssistantPlan.as_view(), name="agent_plan"),
        path("agent/events", AssistantEvents.as_view(), name="agent_events"),
        path("mcp-servers", McpServers.as_view(), name="mcp_servers"),
        path("mcp-servers/<id:server_id>", OneMcpServer.as_view(), name="mcp_server"),
        path("mcp-servers/<id:server_id>/check", CheckMcpServer.as_view(), name="mcp_check"),
        path("mcp-servers/<id:server_id>/accept", AcceptMcpTools.as_view(), name="mcp_accept"),
        path("models", Models.as_view(), name="models"),
        path("schema", Schema.as_view(), name="schema"),
        path("docs", Docs.as_view(), name="docs"),
        re_path(".*", Nowhere.as_view(), name="nowhere"),
    ]
)

"""Pages of conversations."""

from django.urls import path

from agents import attachment_views, forget_views, learning_views, session_views, views

urlpatterns = [
    path("assistant/", views.assistant, name="assistant"),
    path("threads/<uuid:thread_id>/messages", views.thread_messages, name="thread_messages"),
    path("threads/<uuid:thread_id>/turns", views.thread_turns, name="thread_turns"),
    path("threads/<uuid:thread_id>/sessions/", session_views.thread_sessions, name="thread_sessions"),
    path("threads/<uuid:thread_id>/sessions/archive", session_views.sessions_archive, name="sessions_archive"),
    path("threads/<uuid:thread_id>/memory/", learning_views.memory, name="memory"),
    path("threads/<uuid:thread_id>/memory/add", learning_views.memory_add, name="memory_add"),
    path("learnings/<uuid:learning_id>/correct", learning_views.learning_correct, name="learning_correct"),
    path("learnings/<uuid:learning_id>/take-back", learning_views.learning_take_back, name="learning_take_back"),
    path("learnings/<uuid:learning_id>/erase", learning_views.learning_erase, name="learning_erase"),
    path("forget/file/<uuid:thread_id>/", forget_views.forget_file, name="forget_file"),
    path("forget/<str:kind>/<uuid:source_id>/", forget_views.forget_source, name="forget"),
    path("sessions/<uuid:session_id>/", session_views.session, name="session"),
    path("runs/<uuid:run_id>/stop", views.run_stop, name="run_stop"),
    path("runs/<uuid:run_id>/retry", views.run_retry, name="run_retry"),
    path("runs/<uuid:run_id>/restart", views.run_restart, name="run_restart"),
    path("messages/<uuid:message_id>/answer/<int:pick>", views.message_answer, name="message_answer"),
    path("messages/<uuid:message_id>/retry", views.message_retry, name="message_retry"),
    path("messages/<uuid:message_id>/free", views.message_free, name="message_free"),
    path("attachments/<uuid:attachment_id>/", attachment_views.attachment, name="attachment"),
    path("attachments/<uuid:attachment_id>/thumbnail", attachment_views.thumbnail, name="attachment_thumbnail"),
    path("actions/<uuid:action_id>/", views.action, name="action"),
    path("actions/<uuid:action_id>/undo", views.action_undo, name="action_undo"),
    path("actions/<uuid:action_id>/resolve/<str:resolution>", views.action_resolve, name="action_resolve"),
    path("approvals/<uuid:action_id>/<str:digest>/edit", views.approval_edit, name="approval_edit"),
    path("approvals/<uuid:action_id>/<str:digest>/<str:decision>", views.approval_decide, name="approval_decide"),
]

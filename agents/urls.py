"""Pages of conversations."""

from django.urls import path

from agents import views

urlpatterns = [
    path("assistant/", views.assistant, name="assistant"),
    path("threads/<uuid:thread_id>/messages", views.thread_messages, name="thread_messages"),
    path("threads/<uuid:thread_id>/turns", views.thread_turns, name="thread_turns"),
    path("runs/<uuid:run_id>/stop", views.run_stop, name="run_stop"),
    path("messages/<uuid:message_id>/retry", views.message_retry, name="message_retry"),
    path("actions/<uuid:action_id>/", views.action, name="action"),
    path("actions/<uuid:action_id>/resolve/<str:resolution>", views.action_resolve, name="action_resolve"),
    path("approvals/<uuid:action_id>/<str:digest>/<str:decision>", views.approval_decide, name="approval_decide"),
]

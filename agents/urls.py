"""Pages of conversations."""

from django.urls import path

from agents import views

urlpatterns = [
    path("assistant/", views.assistant, name="assistant"),
    path("threads/<uuid:thread_id>/messages", views.thread_messages, name="thread_messages"),
    path("threads/<uuid:thread_id>/turns", views.thread_turns, name="thread_turns"),
    path("runs/<uuid:run_id>/stop", views.run_stop, name="run_stop"),
    path("runs/<uuid:run_id>/retry", views.run_retry, name="run_retry"),
    path("messages/<uuid:message_id>/retry", views.message_retry, name="message_retry"),
    path("actions/<uuid:action_id>/", views.action, name="action"),
]

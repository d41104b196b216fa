"""Addresses of the websockets."""

from django.urls import path

from agents.live.consumers import LiveConsumer

websocket_urlpatterns = [
    path("ws/threads/<uuid:thread_id>/", LiveConsumer.as_asgi()),
    path("ws/", LiveConsumer.as_asgi()),
]

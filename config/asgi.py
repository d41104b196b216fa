"""The web process: pages and API over HTTP, live cells over a websocket."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from config.handler import application as one_thread

http = one_thread()

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter

from agents.live.origins import SameOriginOnly
from agents.live.routing import websocket_urlpatterns

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": SameOriginOnly(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
    }
)

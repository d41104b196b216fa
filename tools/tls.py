"""How servers prove over TLS that they are who they are said to be."""

import functools
import ssl
import threading

_lock = threading.Lock()


def ssl_context() -> ssl.SSLContext:
    """The process's one context, because making it takes 20 ms, and 200 runs may begin at once. It trusts what the
    system trusts."""
    with _lock:
        return _ssl_context()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    import httpcore2

    return httpcore2.default_ssl_context()

"""How settings are read from the environment."""

from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured


class Env(environ.Env):
    """As django-environ's, but what is wrong is named. Its value is not: it may be a secret."""

    def get_value(self, var: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().get_value(var, *args, **kwargs)
        except ValueError:
            raise ImproperlyConfigured(f"{var} is not a number.") from None

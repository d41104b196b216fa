"""The one door to objects that a user can reach."""

from typing import Self

from django.contrib.auth.models import User
from django.db import models


class OwnedQuerySet[M: models.Model](models.QuerySet[M]):
    """The one door to objects that a user can reach; children are looked up through their owner."""

    owner = "user"

    def for_user(self, user: User) -> Self:
        return self.filter(**{self.owner: user})

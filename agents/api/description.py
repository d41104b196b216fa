"""How the routes' own words come into the OpenAPI schema. What is said to whoever reads the code stays here."""

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_doc, get_lib_doc_excludes

from agents.serializers import Strict


class Described(AutoSchema):
    """Operations are described by the docstring of their method alone: that of a view says how it is made."""

    def get_description(self) -> str:  # type: ignore[override]  # as in AutoSchema
        said: str = get_doc(getattr(self.view, self.method.lower(), None))
        return said


def bases() -> list[type]:
    """Classes whose docstrings describe nothing that is theirs."""
    return [Strict, *get_lib_doc_excludes()]  # type: ignore[no-untyped-call]

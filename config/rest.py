"""Settings of the API and its description."""

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["agents.authentication.DeviceAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "agents.api.description.Described",
    "EXCEPTION_HANDLER": "agents.api_errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Waymark API",
    "VERSION": "1",
    "DESCRIPTION": """
Send `Authorization: Bearer <token>` with a token of `POST auth/login`, of *Settings → Devices* or of `manage.py token`.

* What goes in and comes out is JSON. A field that is not declared is refused, never ignored.
* Lists come in pages: go on at the address in `next` until it is null.
* An error is `{"error": {"code", "message", "fields"?}}`: `code` is for programs, `message` for people, `fields` names
  what is wrong with each field.
* What is not yours does not exist: 404.
* A message with a `client_message_id` of your own may be sent again after a cut: it is posted once.
""",
    "GET_LIB_DOC_EXCLUDES": "agents.api.description.bases",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "AuthorEnum": "memory.note.Author",
        "ScopeEnum": "tools.trust.Scope",
        "ActionShapeStatusEnum": "tools.models.ActionStatus",
        "ActionShapeResolutionEnum": "tools.models.Resolution",
    },
    "PATH_CONVERTER_OVERRIDES": {"id": {"type": "string", "format": "uuid"}},
}

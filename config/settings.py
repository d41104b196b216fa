"""All settings, in one place, read from the environment. Wrong values fail loudly at start-up."""

from pathlib import Path

import django_stubs_ext
import environ
from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from config import packs, servers
from config.environment import Env
from config.logs import logging_config
from config.mail import mailer, sender

# Generic classes such as ModelAdmin[Goal] are written for the type checker; this makes them work at run time.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent

env = Env()
environ.Env.read_env(BASE_DIR / ".env")

VERSION = "0.1.0"
DEBUG = env.bool("WAYMARK_DEBUG", default=False)
DATA_DIR = Path(env.str("WAYMARK_DATA", default=str(BASE_DIR / ".waymark"))).resolve()

# `manage.py up` makes both keys and keeps them in the data directory; everybody else must give them.
EXAMPLE_SECRETS = {"", "change-me", "secret", "insecure"}
SECRET_KEY = env.str("WAYMARK_SECRET_KEY", default="")
FIELD_KEYS: list[str] = env.list("WAYMARK_FIELD_KEYS", default=[])
if SECRET_KEY in EXAMPLE_SECRETS or any(key in EXAMPLE_SECRETS for key in FIELD_KEYS):
    raise ImproperlyConfigured(
        "WAYMARK_SECRET_KEY is missing or an example. Start with bin/up, which makes one, or set a random value."
    )

ALLOWED_HOSTS: list[str] = env.list("WAYMARK_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
# Full origins such as https://waymark.example; websockets and cross-origin POSTs are refused from any other.
CSRF_TRUSTED_ORIGINS: list[str] = env.list("WAYMARK_ORIGINS", default=[])
HTTPS = env.bool("WAYMARK_HTTPS", default=False)
# How many proxies a request passes, each of which adds whom it comes from to X-Forwarded-For.
WAYMARK_PROXIES = env.int("WAYMARK_PROXIES", default=0)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "channels",
    "django_htmx",
    "django_rq",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "config.apps.Config",
    "goals.apps.GoalsConfig",
    "agents.apps.AgentsConfig",
    "tools.apps.ToolsConfig",
    "memory.apps.MemoryConfig",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.broken.NotAllowedMiddleware",
    "goals.middleware.UserTimeZoneMiddleware",
    "goals.middleware.GlanceMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
WSGI_APPLICATION = None

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "goals.context.shell",
            ],
        },
    },
]

# -- Servers ----------------------------------------------------------------------------------------------------------
DATABASES = {
    "default": servers.database(
        env.db_url("DATABASE_URL", default="postgres://waymark@localhost/waymark"),
        env.int("WAYMARK_DB_POOL", default=20),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.str("REDIS_URL", default="redis://localhost:6379/0")
REDIS_PREFIX = env.str("WAYMARK_REDIS_PREFIX", default="waymark:")
REDIS_OPTIONS = servers.REDIS_OPTIONS
RQ_QUEUES = {"default": {"URL": REDIS_URL, "DEFAULT_TIMEOUT": 3600, "REDIS_CLIENT_KWARGS": REDIS_OPTIONS}}
RQ_SHOW_ADMIN_LINK = False  # their pages are at /admin/django-rq/ (config.rq_urls)

# -- People -----------------------------------------------------------------------------------------------------------
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# Addresses are not verified, so nobody may add another to their account: it could be somebody else's.
ACCOUNT_MAX_EMAIL_ADDRESSES = 1
# Tries to sign in are counted by agents.throttle.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None}
ACCOUNT_ADAPTER = "agents.accounts.AccountAdapter"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
WAYMARK_SIGNUP_OPEN = env.bool("WAYMARK_SIGNUP_OPEN", default=False)
LOGIN_REDIRECT_URL = "/"
LOGIN_URL = "account_login"
# How mail leaves, such as smtp+tls://user:password@host:587; without it the pages promise none. Its sender.
SENDS_MAIL = bool(env.str("WAYMARK_EMAIL_URL", default=""))
MAILERS = {"default": mailer(env.str("WAYMARK_EMAIL_URL", default="") or "dummymail:")}
DEFAULT_FROM_EMAIL = sender(
    env.str("WAYMARK_EMAIL_FROM", default="") or f"Waymark <waymark@{ALLOWED_HOSTS[0].lstrip('.')}>"
)
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # no mail to strangers because somebody typed their address

SESSION_ENGINE = "config.sessions"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_CSP = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "manifest-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
}

LANGUAGE_CODE = "en"
TIME_ZONE = "Etc/UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("WAYMARK_STATIC_ROOT", default=str(DATA_DIR / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

DATA_UPLOAD_MAX_NUMBER_FILES = 500  # a folder of too many is refused in words
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000  # two for each tool of the largest MCP server
from config.asking import *  # noqa: E402, F403 (all after .env was read)
from config.limits import *  # noqa: E402, F403
from config.mcp import *  # noqa: E402, F403
from config.notices import *  # noqa: E402, F403
from config.rest import *  # noqa: E402, F403
from config.spending import *  # noqa: E402, F403
from config.tools import *  # noqa: E402, F403
from config.uploads import *  # noqa: E402, F403
from config.web import *  # noqa: E402, F403
from config.workers import *  # noqa: E402, F403
from config.workspaces import *  # noqa: E402, F403

# The files of agents, a folder each; on several machines a volume that all web and worker processes share.
WAYMARK_WORKSPACES = Path(env.str("WAYMARK_WORKSPACES", default=str(DATA_DIR / "workspaces"))).resolve()

# How long a request may take to come in, with its body (seconds), and how many connections there may be from one
# address at once; 0 sets no limit, and neither do proxies, on this machine or named by WAYMARK_PROXIES.
WAYMARK_REQUEST_SECONDS = env.float("WAYMARK_REQUEST_SECONDS", default=60)
WAYMARK_CONNECTIONS_PER_ADDRESS = env.int("WAYMARK_CONNECTIONS_PER_ADDRESS", default=200)

# -- What agents are and may do --------------------------------------------------------------------------------------
# What else is done every minute, by every worker: it must bear that.
WAYMARK_BY_THE_CLOCK = ["goals.firing.fire_due", "goals.delivery.deliver"]
# What else tells how the whole is: () -> agents.vitals.Part, several.
WAYMARK_VITALS = ["goals.vitals.parts"]
AGENT_KINDS = ["goals.models.Goal", "agents.models.UserAgent", "agents.models.AgentTask"]
# What the clock will have an agent do: (id of a thread) -> agents.agentable.Ahead, in order.
AGENT_AHEAD = "goals.schedules.ahead"
# What assistants know of all that their user pursues: (user) -> lines for their context.
AGENT_ACROSS = "goals.across.told"
# What else is vouched for with a conversation: (id of its thread).
AGENT_VOUCHED = "goals.schedules.vouched"
AGENT_TOOLS = [
    "agents.tools.SendMessage",
    "agents.tools.AskUser",
    "agents.tools.CreateTask",
    "goals.across_tools.ReadGoal",
    "goals.across_tools.SearchEverything",
    "goals.across_tools.HandToGoal",
    "goals.tools.ScheduleFollowUp",
    "goals.tools.SetRecurringTime",
    "goals.tools.CancelFollowUp",
    "goals.tools.RecordMeasurement",
    "goals.feed_tools.WriteFeed",
    *packs.DEEDS_ON_GOALS,
    "agents.plan_tools.MakePlan",
    "agents.plan_tools.MarkSubtaskComplete",
    "tools.builtin.notes.CreateNote",
    "tools.builtin.notes.SearchNotes",
    "tools.builtin.notes.ListNotes",
    "tools.builtin.notes.ReadNote",
    "tools.builtin.notes.UpdateNote",
    "tools.builtin.notes.DeleteNote",
    "agents.document_tools.ReadDocument",
    "agents.document_tools.WriteDocument",
    "agents.document_tools.AppendDailyNote",
    "tools.builtin.skills.ReadSkill",
    "tools.builtin.learnings.ManageLearning",
    "tools.builtin.learning_deeds.TellLearning",
    "tools.builtin.learning_deeds.CorrectLearning",
    "tools.builtin.learning_deeds.TakeBackLearning",
    "tools.builtin.learning_deeds.ForgetSource",
    "tools.builtin.actions.ListRecentActions",
    "tools.builtin.actions.UndoAction",
    "tools.builtin.recall.SearchAgentHistory",
    "tools.builtin.web.WebSearch",
    "tools.builtin.web.WebFetch",
    "tools.builtin.workspace.ListDir",
    "tools.builtin.workspace.ReadFile",
    "tools.builtin.workspace.WriteFile",
    "tools.builtin.workspace.DeleteFile",
    "tools.builtin.commands.RunCmd",
    *packs.REFLECTIVE_TOOLS,
]
# What of that which tools change can be put back.
AGENT_RESTORERS = [
    "tools.builtin.notes.NoteRestorer",
    "tools.learnings.LearningRestorer",
    "tools.documents.DocumentRestorer",
    "tools.forgetting.SessionRestorer",
    "agents.tools.TaskRestorer",
    "goals.feed_tools.FeedRestorer",
    "goals.feed_tools.FeedItemRestorer",
    "goals.restoring.ScheduleRestorer",
    "goals.restoring.TargetRestorer",
    "goals.restoring.MeasurementRestorer",
    "tools.file_restoring.FileRestorer",
    *packs.REFLECTIVE_RESTORERS,
]

# The model used by those who have set up none: a server named in the environment, else the demo.
OPENAI_BASE_URL = env.str("OPENAI_BASE_URL", default="")
OPENAI_API_KEY = env.str("OPENAI_API_KEY", default="")
WAYMARK_MODEL = env.str("WAYMARK_MODEL", default="gpt-5-mini")

# Who may read /metrics: whoever sends this as a bearer token; without it nobody.
WAYMARK_METRICS_TOKEN = env.str("WAYMARK_METRICS_TOKEN", default="")

LOGGING_CONFIG = None
logging_config(env.str("WAYMARK_LOG_LEVEL", default="INFO"), env.str("WAYMARK_LOG_FORMAT", default="console"))

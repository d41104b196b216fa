"""Pages of goals, notes, jobs, settings and the first run."""

from django.urls import path

from goals.views import chat, goals, home, jobs, model_tests, models, notes, settings, styleguide, welcome

urlpatterns = [
    path("", home.home, name="home"),
    path("ask/", home.ask, name="ask"),
    path("goals/new/", goals.goal_new, name="goal_new"),
    path("goals/<uuid:goal_id>/", chat.goal, name="goal"),
    path("sidebar/", chat.sidebar, name="sidebar"),
    path("goals/<uuid:goal_id>/settings/", goals.goal_settings, name="goal_settings"),
    path("goals/<uuid:goal_id>/archive/", goals.goal_archive, name="goal_archive"),
    path("goals/<uuid:goal_id>/reopen/", goals.goal_reopen, name="goal_reopen"),
    path("goals/<uuid:goal_id>/delete/", goals.goal_delete, name="goal_delete"),
    path("goals/<uuid:goal_id>/notes/", notes.goal_notes, name="goal_notes"),
    path("notes/", notes.notes, name="notes"),
    path("notes/new/", notes.note_new, name="note_new"),
    path("notes/preview/", notes.note_preview, name="note_preview"),
    path("notes/<uuid:note_id>/", notes.note, name="note"),
    path("notes/<uuid:note_id>/delete/", notes.note_delete, name="note_delete"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<uuid:run_id>/", jobs.job, name="job"),
    path("welcome/", welcome.welcome, name="welcome"),
    path("welcome/goal/", welcome.welcome_goal, name="welcome_goal"),
    path("welcome/skip/", welcome.welcome_skip, name="welcome_skip"),
    path("settings/", settings.settings_profile, name="settings"),
    path("settings/appearance/", settings.settings_appearance, name="settings_appearance"),
    path("settings/devices/", settings.settings_devices, name="settings_devices"),
    path("settings/devices/<uuid:device_id>/revoke/", settings.device_revoke, name="device_revoke"),
    path("settings/models/", models.settings_models, name="settings_models"),
    path("settings/models/uses/", models.model_uses, name="model_uses"),
    path("settings/models/test/", model_tests.model_test, name="model_test"),
    path("settings/models/<uuid:connection_id>/", models.connection_edit, name="connection_edit"),
    path("settings/models/<uuid:connection_id>/test/", model_tests.connection_test, name="connection_test"),
    path("settings/models/<uuid:connection_id>/default/", models.connection_default, name="connection_default"),
    path("settings/models/<uuid:connection_id>/delete/", models.connection_delete, name="connection_delete"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
]

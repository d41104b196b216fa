"""Pages of goals, notes, jobs, settings and the first run."""

from django.urls import path

from goals.views import chat, costs, goals, home, jobs, models, notes, settings, styleguide, welcome

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
    path("settings/costs/", costs.settings_costs, name="settings_costs"),
    path("settings/costs/costs.csv", costs.costs_csv, name="costs_csv"),
    path("settings/costs/prices/", costs.price_set, name="price_set"),
    path("settings/costs/prices/<uuid:price_id>/delete/", costs.price_delete, name="price_delete"),
    path("settings/devices/", settings.settings_devices, name="settings_devices"),
    path("settings/devices/<uuid:device_id>/revoke/", settings.device_revoke, name="device_revoke"),
    path("settings/models/", models.settings_models, name="settings_models"),
    path("settings/models/test/", models.model_test, name="model_test"),
    path("settings/models/<uuid:connection_id>/test/", models.connection_test, name="connection_test"),
    path("settings/models/<uuid:connection_id>/default/", models.connection_default, name="connection_default"),
    path("settings/models/<uuid:connection_id>/delete/", models.connection_delete, name="connection_delete"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
]

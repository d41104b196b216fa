#!/usr/bin/env python
"""Waymark's command line; `manage.py help` lists the commands. `up` comes before Django, because it starts the servers
that the settings name; see bin/up --help."""

import os
import sys

WITHOUT_SETTINGS = frozenset(("help", "-h", "--help", "version", "--version"))


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if arguments[1:2] == ["up"]:
        from config.up import main as up

        sys.exit(up(arguments[2:]))
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from config import local

    local.read_env_file()
    adopted = local.adopt(os.environ)
    if arguments[1:2] and arguments[1] not in WITHOUT_SETTINGS and not os.environ.get("WAYMARK_SECRET_KEY"):
        sys.exit(
            f"There is no Waymark in {local.data_path(os.environ)}. Start it with bin/up, or say where its data lies: "
            "WAYMARK_DATA=DIR before the command."
        )
    if local.SERVED.intersection(arguments[1:2]) and local.is_stopped(os.environ, adopted):
        sys.exit(f"Waymark is not running on {local.data_path(os.environ)}. Start it with bin/up.")
    try:
        execute_from_command_line(arguments)
    except ImproperlyConfigured as error:
        if "--traceback" in arguments:
            raise
        sys.exit(f"The settings are not right: {error}")
    except Exception as error:
        if "--traceback" in arguments or not local.is_database_away(error):
            raise
        sys.exit(f"The database does not answer: {error}")


if __name__ == "__main__":
    main(sys.argv)

#!/usr/bin/env python
"""Waymark's command line; `manage.py help` lists the commands. `up` comes before Django, because it starts the servers
that the settings name; see bin/up --help."""

import os
import sys


def main(arguments: list[str]) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if arguments[1:2] == ["up"]:
        from config.up import main as up

        sys.exit(up(arguments[2:]))
    from django.core.management import execute_from_command_line

    from config import local

    local.read_env_file()
    local.adopt(os.environ)
    execute_from_command_line(arguments)


if __name__ == "__main__":
    main(sys.argv)

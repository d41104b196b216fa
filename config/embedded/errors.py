class StartError(Exception):
    """Waymark cannot start or go on; the message tells a person what is wrong and what to do."""

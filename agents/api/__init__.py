"""The API's routes of agents, and what the routes of other apps are built from."""

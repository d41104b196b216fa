"""The API's routes of goals, and of runs and notes, which are shown with the goal they belong to."""

"""Files and programs of agents, and the walls around them (threats T13 and T14)."""

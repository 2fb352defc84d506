"""Version 1 of it."""

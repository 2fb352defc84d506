"""The runner drives an engine: it alone knows time."""

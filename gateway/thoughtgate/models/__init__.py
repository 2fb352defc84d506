"""Model clients: one adapter per file behind `core.ports.ModelClient`."""

"""Settings, read strictly from one file; only `app` and `cli` may look."""

"""The registry's migrations. Never edited after a release: a change is a new one."""

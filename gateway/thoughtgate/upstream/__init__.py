"""Connections to tool servers. One task owns each connection; never retries a write."""

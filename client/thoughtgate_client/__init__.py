"""A small async client for a gateway, over MCP."""

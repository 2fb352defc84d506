"""Sans-IO MCP for both eras: the only JSON-RPC knowledge; never waits or opens anything."""

"""MCP as values, for both protocol eras: bytes in, values out, and back. Never does I/O."""

"""The durable registry: servers, tools, domains, audit. Never deletes a database."""

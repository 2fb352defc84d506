"""JSON Schema: compile once per digest, validate, explain, guard. Never fetches a reference."""

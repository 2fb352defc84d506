"""Messages of any gRPC service as JSON: schemas, values both ways. Never opens a connection."""

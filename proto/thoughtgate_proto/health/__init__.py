"""Messages of the health service, in the shape of the public protocol."""

"""Messages of server reflection, in the shape of the public protocol."""

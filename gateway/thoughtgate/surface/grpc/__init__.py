"""What clients see over gRPC. Never loaded unless it is switched on."""

import os

# gRPC's own library writes to stderr what callers hear anyway; it looks once, when it is loaded
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

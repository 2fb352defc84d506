"""Links to gRPC servers; loaded only where one is opened, for `grpc` takes its time to import."""

import os

# C-core writes to standard error, which may be a client's own; what matters comes as errors
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

"""What clients see over gRPC. Never loaded unless it is switched on."""

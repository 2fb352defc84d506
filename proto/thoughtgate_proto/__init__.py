"""Protocol buffers of the gateway and of native tool servers."""

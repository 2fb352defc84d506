"""thoughtgate: a gateway between clients and tool servers, which can also think."""

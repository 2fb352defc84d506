"""Connections to tool servers that speak gRPC. Never loaded before there is one."""

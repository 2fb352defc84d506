"""Reasoning engines as pure state machines. Never waits, logs or touches a tool."""

"""The command line: arguments, exit codes, terminal output."""

from thoughtgate.cli.root import main

__all__ = ["main"]

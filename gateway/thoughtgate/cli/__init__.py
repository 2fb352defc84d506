"""The command line: arguments, exit codes, terminal output."""

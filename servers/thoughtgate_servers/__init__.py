"""Tool servers that people can use on their own: logs, report, notify, files."""

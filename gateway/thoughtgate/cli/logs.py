"""Log lines on stderr.

Never lets a control character from a tool server reach the terminal.
"""

import logging

from thoughtgate.cli.output import clean


def log_to_stderr(level: str) -> None:
    """Write log lines of this level and above to stderr, from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Cleaned("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class _Cleaned(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))

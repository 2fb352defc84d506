"""Log lines on stderr.

Never lets a control character from a tool server reach the terminal.
"""

import logging

from thoughtgate.cli.output import clean


def log_to_stderr(level: str, *, warn_of: str = "") -> None:
    """Write log lines of this level and above to stderr, from now on.

    Of the room `warn_of`, warnings are written in any case.
    """
    lowest = logging.getLevelNamesMapping()[level.upper()]
    handler = logging.StreamHandler()
    handler.setFormatter(_Cleaned("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(lambda record: record.levelno >= lowest or _of(record, warn_of))
    wanted = min(lowest, logging.WARNING) if warn_of else lowest
    logging.basicConfig(level=wanted, handlers=[handler], force=True)


def _of(record: logging.LogRecord, room: str) -> bool:
    return bool(room) and record.name.startswith(f"{room}.")


class _Cleaned(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return clean(super().format(record))

"""The formats: syslog (RFC 3164, RFC 5424, ISO dates), nginx, Python logging, JSON lines.

Each is a function (line, year) -> Record | None; a line belongs to the first that knows it. Never
looks at a second line.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from thoughtgate_servers.logs.records import Record, iso_clock, rank

Format = Callable[[str, datetime], Record | None]
"""(line, when the file was last written) -> the record that starts on this line."""

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_LEVEL = r"(?:TRACE|DEBUG|INFO|SUCCESS|NOTICE|WARNING|WARN|ERROR|EXCEPTION|CRITICAL|FATAL)(?![\w.])"

_PYTHON_LEVEL_FIRST = re.compile(
    rf"\[?({_TIME})\]?(?: \[\d+\])?[ |:\[-]+({_LEVEL})[\] |:-]*"
    r"(?:\[?([A-Za-z_][\w.<>]*)\]?(?::[\w<>]+)*(?::\d+)?(?:: | - | \| ))?(.*)"
)
_PYTHON_LOGGER_FIRST = re.compile(
    rf"({_TIME})[ \[-]+([A-Za-z_][\w.]*)[\] -]+\[?({_LEVEL})\]?[ :-]*(.*)"
)
_PYTHON_BASIC = re.compile(rf"({_LEVEL}):([\w.]+):(.*)")
_NGINX_ERROR = re.compile(
    r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(debug|info|notice|warn|error|crit|alert|emerg)\] "
    r"\d+#\d+: (?:\*\d+ )?(.*)"
)
_NGINX_ACCESS = re.compile(
    r'\S+ \S+ \S+ \[([^\]]{20,40})\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:\d+|-)(?: .*)?'
)
_SYSLOG_OLD = re.compile(
    r"(?:<(\d{1,3})>)?([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ ([^\s:\[]+)(?:\[[^\]]*\])?: ?(.*)"
)
# a level in the place of host or program makes it a Python record: no line fits two formats
_SYSLOG_ISO = re.compile(
    rf"(\d{{4}}-\d\d-\d\dT\S+) (?![\[|-]*{_LEVEL})\S+ (?!{_LEVEL})([^\s:\[]+)"
    r"(?:\[[^\]]*\])?:(?: (.*)|$)"
)
_SYSLOG_NEW = re.compile(
    r"<(\d{1,3})>1 (\S+) \S+ (\S+) \S+ \S+ "
    r'(?:-|(?:\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])+)(?: (.*))?'
)
# fmt: off
_MONTH_NAMES = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)
# fmt: on
_SOUNDS_BAD = re.compile(
    r"\b(?:error|err|fail|failed|failure|fatal|panic|critical|segfault|exception)\b"
    r"|错误|失败|异常|崩溃",
    re.IGNORECASE,
)
_MONTHS = {name: month for month, name in enumerate(_MONTH_NAMES, 1)}
_ERROR, _WARNING, _INFO = 3, 4, 6


def python(line: str, _written: datetime) -> Record | None:
    """Python's logging in its common layouts, loguru's and gunicorn's too."""
    if not (line[:1].isdigit() or line[:1] == "["):
        found = _PYTHON_BASIC.match(line)
        return _python("", found[1], found[2], found[3]) if found else None
    if found := _PYTHON_LEVEL_FIRST.match(line):
        return _python(found[1], found[2], found[3] or "", found[4])
    if found := _PYTHON_LOGGER_FIRST.match(line):
        return _python(found[1], found[3], found[2], found[4])
    return None


def nginx_error(line: str, _written: datetime) -> Record | None:
    """Nginx's error log."""
    found = _NGINX_ERROR.match(line)
    if found is None:
        return None
    return Record(
        kind="nginx error",
        rank=_known(found[2]),
        type=f"nginx {found[2]}",
        message=found[3],
        when=found[1],
        clock=_nginx_error_clock,
    )


def nginx_access(line: str, _written: datetime) -> Record | None:
    """Access logs in the common and the combined format: 5xx are errors, 4xx warnings."""
    found = _NGINX_ACCESS.match(line)
    if found is None:
        return None
    status = int(found[3])
    severity = _ERROR if status >= 500 else _WARNING if status >= 400 else _INFO
    return Record(
        kind="nginx access",
        rank=severity,
        type=f"nginx {status}",
        message=found[2],
        when=found[1],
        clock=_access_clock,
    )


def syslog(line: str, written: datetime) -> Record | None:
    """RFC 5424, RFC 3164 with and without a priority, and files with ISO dates.

    Without a priority the text decides: words such as error, failed or 失败 make it an error.
    """
    if line[:1] == "<" and (found := _SYSLOG_NEW.match(line)):
        return _syslog(found[3], int(found[1]), found[4] or "", found[2], iso_clock)
    if found := _SYSLOG_OLD.match(line):
        priority = int(found[1]) if found[1] else None
        return _syslog(found[3], priority, found[4], found[2], partial(_old_clock, written=written))
    if line[:1].isdigit() and (found := _SYSLOG_ISO.match(line)):
        return _syslog(found[2], None, found[3] or "", found[1], iso_clock)
    return None


def json_line(line: str, _written: datetime) -> Record | None:
    """One JSON object per line, in the spellings of the usual libraries."""
    if line[:1] != "{":
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    failure = _json_error_type(value)
    level = _json_level(value)
    if level is None:
        level = _ERROR if failure else _INFO
    logger = _first(value, ("logger", "logger_name", "name", "component", "service"))
    return Record(
        kind="json",
        rank=level,
        type=failure or f"json {_level_name(level)} {logger or '-'}",
        message=_first(value, ("message", "msg", "event", "text")),
        when=_first(value, ("timestamp", "@timestamp", "time", "ts", "asctime", "datetime")),
        clock=_json_clock,
    )


FORMATS: tuple[Format, ...] = (json_line, python, nginx_error, nginx_access, syslog)


def _python(when: str, level: str, logger: str, message: str) -> Record:
    return Record(
        kind="python",
        rank=_known(level),
        type=f"{level} {logger or 'root'}",
        message=message,
        when=when,
        clock=_python_clock,
        open=True,
    )


def _syslog(
    program: str,
    priority: int | None,
    message: str,
    when: str,
    clock: Callable[[str], datetime | None],
) -> Record:
    if priority is not None:
        severity = priority % 8
    else:
        severity = _ERROR if _SOUNDS_BAD.search(message) else _INFO
    return Record(
        kind="syslog",
        rank=severity,
        type=f"syslog {_level_name(severity)} {program}",
        message=message,
        when=when,
        clock=clock,
    )


def _known(level: str) -> int:
    found = rank(level)
    return _INFO if found is None else found


def _level_name(severity: int) -> str:
    return ("emerg", "alert", "crit", "error", "warning", "notice", "info", "debug")[severity]


def _json_level(value: Mapping[str, Any]) -> int | None:
    for key in ("level", "severity", "levelname", "log.level", "loglevel", "lvl"):
        found = value.get(key)
        if isinstance(found, str):
            return rank(found)
        if isinstance(found, int) and not isinstance(found, bool):
            # bunyan and pino: 60 fatal, 50 error, 40 warn, 30 info
            return next((r for low, r in ((60, 2), (50, 3), (40, 4), (30, 6)) if found >= low), 7)
    log = value.get("log")
    return rank(str(log.get("level"))) if isinstance(log, dict) else None


def _json_error_type(value: Mapping[str, Any]) -> str:
    named = _first(value, ("error.type", "exc_type", "exception.type", "error_type", "exception"))
    if named and len(named) <= 120 and " " not in named and "\n" not in named:
        return named
    for key in ("error", "exception", "err", "exc"):
        inner = value.get(key)
        if isinstance(inner, dict):
            return _first(inner, ("type", "class", "name", "kind"))
    trace = _first(value, ("exc_info", "exception", "traceback", "stack_trace", "stack"))
    if "Traceback (most recent call last)" in trace:
        last = trace.strip().rpartition("\n")[2]
        return last.partition(":")[0].strip()
    return ""


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        found = value.get(key)
        if isinstance(found, str) and found:
            return found
        if isinstance(found, int | float) and not isinstance(found, bool):
            return str(found)
    return ""


def _python_clock(text: str) -> datetime | None:
    # gunicorn writes a space before the offset
    return iso_clock(text.replace(" +", "+").replace(" -", "-") if len(text) > 23 else text)


def _nginx_error_clock(text: str) -> datetime | None:
    return iso_clock(text.replace("/", "-"))


def _access_clock(text: str) -> datetime | None:
    # 01/May/2026:12:00:00 +0800; month names are English whatever the locale
    day, month, rest = text[:2], _MONTHS.get(text[3:6]), text[7:]
    if month is None:
        return None
    year, clock, offset = rest[:4], rest[5:13], rest[14:]
    return iso_clock(f"{year}-{month:02d}-{day}T{clock}{offset}")


def _old_clock(text: str, *, written: datetime) -> datetime | None:
    """The year is missing: take the last one in which the date is not after the file's own."""
    month = _MONTHS.get(text[:3])
    if month is None:
        return None
    for year in (written.year + 1, written.year, written.year - 1):
        try:
            when = datetime.fromisoformat(f"{year}-{month:02d}-{int(text[4:6]):02d}T{text[7:]}")
        except ValueError:
            continue
        if (when.replace(tzinfo=UTC) - written).days < 1:
            return when
    return None


def _json_clock(text: str) -> datetime | None:
    if not text.replace(".", "", 1).isdigit():
        return iso_clock(text)
    try:
        seconds = float(text)
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None

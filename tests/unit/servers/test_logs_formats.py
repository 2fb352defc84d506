"""The formats: which line is what, how bad, and when."""

from datetime import UTC, datetime

import pytest

from thoughtgate_servers.logs.formats import FORMATS
from thoughtgate_servers.logs.records import SEVERITIES, Record

WRITTEN = datetime(2026, 5, 20, tzinfo=UTC)


def parse(line: str) -> Record:
    found = [record for known in FORMATS if (record := known(line, WRITTEN)) is not None]
    assert len(found) == 1, f"{len(found)} formats know {line!r}"
    return found[0]


@pytest.mark.parametrize(
    ("line", "kind", "type_", "severity", "when"),
    [
        (
            "2026-05-01 12:00:00,123 ERROR app.db: 连接失败",
            "python", "ERROR app.db", "error", "2026-05-01T12:00:00.123000",
        ),
        (
            "2026-05-01 12:00:00,123 - app.db - CRITICAL - boom",
            "python", "CRITICAL app.db", "critical", "2026-05-01T12:00:00.123000",
        ),
        (
            "2026-05-01 12:00:00 [ERROR] app.db: boom",
            "python", "ERROR app.db", "error", "2026-05-01T12:00:00",
        ),
        (
            "[2026-05-01 12:00:00 +0000] [77] [ERROR] Exception in worker process",
            "python", "ERROR root", "error", "2026-05-01T12:00:00+00:00",
        ),
        (
            "2026-05-01 12:00:00.123 | ERROR    | shop.cart:add:42 - no stock",
            "python", "ERROR shop.cart", "error", "2026-05-01T12:00:00.123000",
        ),
        ("ERROR:app.db:boom", "python", "ERROR app.db", "error", None),
        (
            "2026-05-01 12:00:00,123 WARNING app.db: ERROR is only a word here",
            "python", "WARNING app.db", "warning", "2026-05-01T12:00:00.123000",
        ),
        (
            "2026-05-01T12:00:00 ERROR app.db: boom",
            "python", "ERROR app.db", "error", "2026-05-01T12:00:00",
        ),
        (
            "2026/05/01 12:00:00 [crit] 1#0: *7 connect() failed, client: 1.2.3.4",
            "nginx error", "nginx crit", "critical", "2026-05-01T12:00:00",
        ),
        (
            '1.2.3.4 - - [01/May/2026:12:00:00 +0800] "GET /搜索 HTTP/1.1" 502 0 "-" "a \\"b\\""',
            "nginx access", "nginx 502", "error", "2026-05-01T12:00:00+08:00",
        ),
        (
            '::1 - bob [01/May/2026:12:00:00 +0000] "GET / HTTP/2.0" 404 12',
            "nginx access", "nginx 404", "warning", "2026-05-01T12:00:00+00:00",
        ),
        (
            "May  1 12:00:00 web-1 sshd[7]: error: kex failed",
            "syslog", "syslog error sshd", "error", "2026-05-01T12:00:00",
        ),
        (
            "May 10 12:00:00 web-1 dockerd[7]: 容器启动失败",
            "syslog", "syslog error dockerd", "error", "2026-05-10T12:00:00",
        ),
        (
            "May 10 12:00:00 web-1 cron[7]: (root) CMD (terror-list)",
            "syslog", "syslog info cron", "info", "2026-05-10T12:00:00",
        ),
        (
            "<11>May 10 12:00:00 web-1 app: plain words",
            "syslog", "syslog error app", "error", "2026-05-10T12:00:00",
        ),
        (
            '<130>1 2026-05-01T12:00:00.5Z db-1 postgres 9 ID [a b="x\\"y\\]"] 坏块',
            "syslog", "syslog crit postgres", "critical", "2026-05-01T12:00:00.500000+00:00",
        ),
        (
            "<134>1 2026-05-01T12:00:00Z db-1 postgres - - - error is only a word here",
            "syslog", "syslog info postgres", "info", "2026-05-01T12:00:00+00:00",
        ),
        (
            "2026-05-01T12:00:00.123456+08:00 web-1 kernel: I/O error, dev sda",
            "syslog", "syslog error kernel", "error", "2026-05-01T12:00:00.123456+08:00",
        ),
        (
            '{"timestamp": "2026-05-01T12:00:00Z", "level": "ERROR", "logger": "计费", "msg": "x"}',
            "json", "json error 计费", "error", "2026-05-01T12:00:00+00:00",
        ),
        (
            '{"time": 1777636800000, "level": 60, "name": "api", "err": {"type": "TimeoutError"}}',
            "json", "TimeoutError", "critical", "2026-05-01T12:00:00+00:00",
        ),
        (
            '{"ts": 1777636800.0, "severity": "WARN", "logger": "api"}',
            "json", "json warning api", "warning", "2026-05-01T12:00:00+00:00",
        ),
        (
            '{"@timestamp": "2026-05-01", "log": {"level": "error"}, "error.type": "a.B"}',
            "json", "a.B", "error", "2026-05-01T00:00:00",
        ),
        (
            '{"level":"error","exc_info":"Traceback (most recent call last):\\n  x\\nKeyError: 1"}',
            "json", "KeyError", "error", None,
        ),
    ],
)  # fmt: skip
def test_a_line_is_known_by_exactly_one_format(
    line: str, kind: str, type_: str, severity: str, when: str | None
) -> None:
    record = parse(line)
    time = record.clock(record.when) if record.when else None
    seen = (record.kind, record.type, SEVERITIES[record.rank], time and time.isoformat())
    assert seen == (kind, type_, severity, when)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "plain words with error in them",
        "{not json",
        "[1, 2]",
        "{" * 100_000,
        '{"a":' * 20_000,
        '{"n": ' + "9" * 10_000 + "}",
        "2026-05-01 12:00:00 status installed libc-bin:amd64 2.36",
        "<999999>1 x",
        "a" * 65_536,
        "Mai  1 12:00:00 ohne Doppelpunkt",
        "2026-05-01 12:00:00,123 " + "-" * 60_000,
        '1.2.3.4 - - [01/May/2026:12:00:00 +0000] "' + "\\" * 60_000,
        "<11>1 2026-05-01T12:00:00Z h a p m [" + '"' * 60_000,
    ],
)
def test_a_line_of_no_format_is_known_by_none(line: str) -> None:
    """Hostile lines too: none takes long enough to notice, none raises."""
    assert all(known(line, WRITTEN) is None for known in FORMATS)


@pytest.mark.parametrize(
    ("line", "year"),
    [("Dec 31 23:00:00 h p: failed", 2025), ("May 20 01:00:00 h p: failed", 2026),
     ("Feb 29 01:00:00 h p: failed", None)],
)  # fmt: skip
def test_the_missing_year_is_the_last_one_before_the_file_was_written(
    line: str, year: int | None
) -> None:
    record = parse(line)
    time = record.clock(record.when)
    assert (time.year if time else None) == year

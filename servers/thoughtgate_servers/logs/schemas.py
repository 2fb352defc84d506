"""The schemas of the logs server's tools.

Never knows how the answers are found.
"""

from thoughtgate_servers.logs.records import SEVERITIES
from thoughtgate_servers.schemas import (
    Schema,
    array,
    flag,
    integer,
    nullable,
    number,
    record,
    text,
)

MAX_PATHS = 1000
MAX_LINES = 5000

_TIME = "ISO 8601 date or time; UTC when it has no offset"
_PATH = text("A file under the allowed directories.", minLength=1, maxLength=4096)
_BOUNDS = {
    "since": text(f"Only entries at or after this time ({_TIME}).", maxLength=40),
    "until": text(f"Only entries before this time ({_TIME}).", maxLength=40),
}
_SEVERITY = text(
    "Count entries of this severity and worse. warning adds nginx 4xx.",
    enum=["warning", "error", "critical"],
    default="error",
)
_PATHS = array(_PATH, "Files, as find_logs names them in paths.", minItems=1, maxItems=MAX_PATHS)

GROUP = record(
    {
        "type": text(
            "Exception class (ValueError), nginx status or level (nginx 502, nginx crit), syslog "
            "severity and program (syslog error sshd), JSON error type or level and logger "
            "(json error billing), Python level and logger (ERROR app.db)."
        ),
        "severity": text(enum=list(SEVERITIES)),
        "count": integer(minimum=0),
        "first_seen": nullable(text("As written in the log.")),
        "last_seen": nullable(text("As written in the log.")),
    },
    {"file": text(), "day": text("YYYY-MM-DD as written, empty when undated.")},
)

FILE_REPORT = record({
    "path": text(),
    "formats": array(text(), "Formats found, most frequent first."),
    "lines": integer(minimum=0),
    "errors": integer(minimum=0),
    "unrecognised_lines": integer("Lines of no known format.", minimum=0),
    "replaced_bytes": integer("Byte sequences that are not UTF-8.", minimum=0),
    "cut_lines": integer("Lines longer than 64 KiB.", minimum=0),
    "undated": integer("Errors without a readable time.", minimum=0),
    "problem": nullable(text("Why the file was not read to its end.")),
})

FIND_INPUT = record(
    {},
    {
        "directory": text("Where to look; default the first allowed one.", maxLength=4096),
        "pattern": text(
            "Glob over the file's name, or over its path below the directory when it has a slash.",
            default="*",
            minLength=1,
            maxLength=400,
        ),
        "max_age_days": number(
            "Only files written to within this many days.", exclusiveMinimum=0, maximum=36_500
        ),
        "since": text(f"Only files written to at or after this time ({_TIME}).", maxLength=40),
        "until": text(f"Only files last written to before this time ({_TIME}).", maxLength=40),
        "recursive": flag("Look into subdirectories too.", default=True),
        "limit": integer("Files per page.", minimum=1, maximum=MAX_PATHS, default=200),
        "cursor": text("next_cursor of the page before.", maxLength=8192),
    },
)

FIND_OUTPUT = record({
    "files": array(
        record({
            "path": text(),
            "size": integer("Bytes on disk.", minimum=0),
            "modified": text("ISO 8601, UTC."),
            "compression": text(enum=["none", "gzip"]),
        }),
        "This page, sorted by path.",
    ),
    "paths": array(text(), "The paths of files, ready for classify_errors."),
    "total": integer("Files on all pages.", minimum=0),
    "complete": flag("False when the directory holds too many names to look at them all."),
    "unspeakable": integer("Files whose names are not UTF-8, left out.", minimum=0),
    "next_cursor": nullable(text()),
})

READ_INPUT = record(
    {"path": _PATH},
    {
        "start_line": integer(
            "First line, from 1; negative counts from the end (-100 is the last hundred).",
            minimum=-MAX_LINES,
            default=1,
        ),
        "max_lines": integer(minimum=1, maximum=MAX_LINES, default=200),
    },
)

READ_OUTPUT = record({
    "path": text(),
    "start_line": integer(minimum=0),
    "lines": array(text()),
    "next_line": nullable(integer("Where the next page starts; null at the end.", minimum=1)),
    "replaced_bytes": integer(minimum=0),
    "problem": nullable(text("Why the file was not read to its end.")),
})

CLASSIFY_INPUT = record(
    {"paths": _PATHS},
    {
        **_BOUNDS,
        "min_severity": _SEVERITY,
        "detail": text(
            "How finely groups are cut: by type and severity, also by file, also by day.",
            enum=["type", "file", "day"],
            default="file",
        ),
        "samples_per_type": integer(minimum=0, maximum=20, default=3),
        "max_groups": integer(minimum=1, maximum=20_000, default=5_000),
    },
)

CLASSIFY_OUTPUT = record({
    "total_errors": integer(minimum=0),
    "total_lines": integer(minimum=0),
    "types": array(record({"type": text(), "count": integer(minimum=0)}), "Most frequent first."),
    "groups": array(GROUP, "Ready for count_errors; most frequent first."),
    "groups_cut": flag("True when more groups exist than are shown or kept."),
    "samples": array(
        record({
            "type": text(),
            "file": text(),
            "line": integer(minimum=1),
            "time": nullable(text()),
            "message": text(),
        })
    ),
    "files": array(FILE_REPORT),
    "unreadable": integer("Files that were not read to their end.", minimum=0),
})

COUNT_INPUT = record(
    {"by": text("What to count by.", enum=["type", "file", "day", "severity"])},
    {
        "paths": _PATHS,
        "groups": array(GROUP, "groups of classify_errors, instead of paths.", maxItems=20_000),
        **_BOUNDS,
        "min_severity": _SEVERITY,
        "limit": integer("Rows to return; the rest is summed in other.", minimum=1, maximum=5_000),
    },
)

ROW = record({
    "key": text(),
    "count": integer(minimum=0),
    "share": number("Of all errors, 0 to 1.", minimum=0, maximum=1),
    "first_seen": nullable(text()),
    "last_seen": nullable(text()),
})

COUNT_OUTPUT: Schema = record({
    "by": text(),
    "total": integer(minimum=0),
    "distinct": integer("Different keys, shown or not.", minimum=0),
    "rows": array(ROW, "Most frequent first; days in order of time."),
    "other": integer("Errors in rows that were left out by limit.", minimum=0),
})

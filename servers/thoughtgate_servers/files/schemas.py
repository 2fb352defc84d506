"""The schemas of the files server's tools.

Never knows how the answers are found.
"""

from thoughtgate_servers.schemas import array, flag, integer, nullable, record, text

MAX_WRITE = 2_000_000
MAX_READ = 1_000_000
MAX_OFFSET = 2**53

_PATH = text("A path under the allowed directories.", minLength=1, maxLength=4096)
_ENCODING = text(enum=["utf-8", "base64"], default="utf-8")

READ_INPUT = record(
    {"path": _PATH},
    {
        "offset": integer("First byte.", minimum=0, maximum=MAX_OFFSET, default=0),
        "max_bytes": integer(minimum=1, maximum=MAX_READ, default=100_000),
        "encoding": _ENCODING,
    },
)
READ_OUTPUT = record({
    "path": text(),
    "size": integer("Of the whole file.", minimum=0),
    "offset": integer(minimum=0),
    "content": text(),
    "encoding": text(enum=["utf-8", "base64"]),
    "replaced_bytes": integer("Byte sequences that are not UTF-8.", minimum=0),
    "next_offset": nullable(integer("Where the next page starts.", minimum=1)),
})

LIST_INPUT = record(
    {},
    {
        "path": text("A directory; default the first allowed one.", minLength=1, maxLength=4096),
        "limit": integer(minimum=1, maximum=1_000, default=200),
        "cursor": text("next_cursor of the page before.", maxLength=8192),
    },
)
LIST_OUTPUT = record({
    "path": text(),
    "entries": array(
        record({
            "name": text(),
            "kind": text(enum=["file", "directory", "link", "other"]),
            "size": integer(minimum=0),
            "modified": text("ISO 8601, UTC."),
        })
    ),
    "total": integer(minimum=0),
    "unspeakable": integer("Entries whose names are not UTF-8, left out.", minimum=0),
    "next_cursor": nullable(text()),
})

WRITE_INPUT = record(
    {"path": _PATH, "content": text(maxLength=3_000_000)},
    {
        "encoding": _ENCODING,
        "overwrite": flag("Replace a file of other content.", default=False),
        "make_directories": flag("Make missing directories above the file.", default=False),
    },
)
WRITE_OUTPUT = record({
    "path": text(),
    "size": integer(minimum=0),
    "outcome": text(enum=["created", "replaced", "unchanged"]),
})

SEARCH_INPUT = record(
    {},
    {
        "path": text("Where; default the first allowed directory.", minLength=1, maxLength=4096),
        "pattern": text(
            "Glob over the name, or over the path below when it has a slash.",
            minLength=1,
            maxLength=400,
            default="*",
        ),
        "text": text("Only lines that hold this, whatever the case.", minLength=1, maxLength=400),
        "limit": integer(minimum=1, maximum=1_000, default=100),
    },
)
SEARCH_OUTPUT = record({
    "matches": array(
        record(
            {"path": text(), "line": nullable(integer(minimum=1)), "text": text()},
        )
    ),
    "complete": flag("False when there may be more."),
})

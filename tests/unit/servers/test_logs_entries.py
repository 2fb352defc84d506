"""From lines to entries: a traceback over several lines is one error."""

from datetime import UTC, datetime

from thoughtgate_servers.logs.entries import UNFINISHED, Assembler, Entry

WRITTEN = datetime(2026, 5, 20, tzinfo=UTC)
RECORD = "2026-05-01 12:00:00,000 ERROR app: 请求失败"
TRACE = [
    "Traceback (most recent call last):",
    '  File "x.py", line 1, in f',
    "    g()",
    "    ^^^",
]
INFO = "2026-05-01 12:00:01,000 INFO app: fine"


def errors(*lines: str) -> list[Entry]:
    entries = [entry for entry in Assembler(WRITTEN).entries(lines) if entry is not None]
    return [entry for entry in entries if entry.rank <= 3]


def types(*lines: str) -> list[str]:
    return [entry.type for entry in errors(*lines)]


def test_a_record_with_a_traceback_is_one_error_of_its_exception() -> None:
    [entry] = errors(RECORD, *TRACE, "app.errors.Broken: 不行", INFO)
    assert (entry.type, entry.message, entry.line) == ("app.errors.Broken", "不行", 1)


def test_an_exception_without_a_message_is_known() -> None:
    assert types(RECORD, *TRACE, "KeyboardInterrupt", INFO) == ["KeyboardInterrupt"]


def test_a_message_of_several_lines_belongs_to_its_error() -> None:
    lines = [RECORD, *TRACE, "ValueError: first", "second: line", "", "third", RECORD]
    assert types(*lines) == ["ValueError", "ERROR app"]


def test_a_chain_is_one_error_of_the_last_exception() -> None:
    during = "During handling of the above exception, another exception occurred:"
    cause = "The above exception was the direct cause of the following exception:"
    lines = [RECORD, *TRACE, "KeyError: 1", "", during, "", *TRACE, "OSError: 2", "", cause, ""]
    assert types(*lines, *TRACE, "RuntimeError: 3", INFO) == ["RuntimeError"]


def test_an_exception_group_is_one_error() -> None:
    group = [
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "x.py", line 1, in f',
        "  |     raise ExceptionGroup(",
        "  | ExceptionGroup: two (2 sub-exceptions)",
        "  +-+---------------- 1 ----------------",
        "    | Traceback (most recent call last):",
        "    | ValueError: 1",
        "    +------------------------------------",
    ]
    assert types(RECORD, *group, INFO) == ["ExceptionGroup"]


def test_a_bare_traceback_is_an_error_with_the_time_before_it() -> None:
    [entry] = errors(INFO, "not a record", *TRACE, "ValueError: x")
    assert entry.type == "ValueError"
    [alone] = errors(*TRACE, "ValueError: x")
    assert alone.time() is None


def test_two_bare_tracebacks_are_two_errors() -> None:
    assert types(*TRACE, "KeyError: 1", *TRACE, "OSError: 2") == ["KeyError", "OSError"]


def test_a_traceback_after_another_format_stands_for_itself() -> None:
    """A traceback never turns an access record into an exception."""
    access = '1.2.3.4 - - [01/May/2026:12:00:00 +0000] "GET / HTTP/1.1" 500 0'
    assert types(access, *TRACE, "ValueError: x") == ["nginx 500", "ValueError"]


def test_a_traceback_that_the_file_cuts_off_is_still_one_error() -> None:
    assert types(RECORD, *TRACE) == [UNFINISHED]
    assert types(RECORD, *TRACE, RECORD) == [UNFINISHED, "ERROR app"]


def test_a_traceback_after_a_record_that_is_no_error_is_an_error_of_its_own() -> None:
    """Mostly a crash whose traceback went into the same file."""
    [entry] = errors(INFO, *TRACE, "ValueError: x", RECORD)[:1]
    assert (entry.type, entry.line) == ("ValueError", 2)
    assert str(entry.time()) == "2026-05-01 12:00:01"


def test_unknown_lines_are_counted_and_continuations_are_not() -> None:
    assembler = Assembler(WRITTEN)
    lines = ["???", "", "{broken", RECORD, "more of the message", INFO, "and more"]
    list(assembler.entries(lines))
    assert assembler.unrecognised == 2
    assert assembler.kinds == {"python": 2}


def test_formats_may_change_from_line_to_line() -> None:
    access = '1.2.3.4 - - [01/May/2026:12:00:00 +0000] "GET / HTTP/1.1" 503 0'
    syslog = "May  1 12:00:00 h sshd[1]: Failed password"
    json = '{"level": "error", "logger": "x"}'
    wanted = ["nginx 503", "syslog error sshd", "json error x", "ERROR app"]
    assert types(*[access, syslog, json, RECORD] * 3) == wanted * 3

"""Audit rows as bytes: canonical, bounded, on one line, and never a reason to stop the log."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.support.registries import make_row
from thoughtgate.core.audit import AuditRow
from thoughtgate.core.json import canonical
from thoughtgate.registry import chain

TEXT = st.text(st.characters(), max_size=40)


@given(reason=TEXT, tool=TEXT)
def test_a_row_is_hashed_as_the_canonical_json_of_what_it_says(reason: str, tool: str) -> None:
    body = chain.body_of(make_row(reason=reason, tool=tool))
    decoded = msgspec.json.decode(body)
    assert decoded.get("reason", "") == readable(reason)
    assert decoded.get("tool", "") == readable(tool)
    assert "run_id" not in decoded
    assert body == canonical(decoded)


def readable(text: str) -> str:
    """A lone surrogate reads as its escape: it could neither be stored nor shown."""
    return text.encode("utf-8", "backslashreplace").decode()


def test_every_empty_field_is_left_out_of_a_row() -> None:
    values = {name: type(value)() for name, value in make_row()._asdict().items()}
    assert chain.body_of(AuditRow(**values)) == b"{}"
    assert chain.body_of(AuditRow(**{**values, "at_ns": 7})) == b'{"at_ns":7}'


def test_a_note_that_is_no_unicode_stays_readable() -> None:
    body = chain.body_of(make_row()._replace(notes=("repaired:/\udcff",)))
    assert msgspec.json.decode(body)["notes"] == ["repaired:/\\udcff"]


def test_line_breaks_and_escapes_of_others_stay_inside_the_row() -> None:
    body = chain.body_of(make_row(tool="a\nfake row\r\x1b[31m\x00"))
    assert not set(body) & set(range(32))


def test_an_endless_text_is_cut() -> None:
    body = chain.body_of(make_row(reason="x" * 10_000_000))
    assert len(body) < chain.BODY_LIMIT
    assert msgspec.json.decode(body)["reason"].startswith("xxx")


def test_the_first_hash_differs_from_chain_to_chain() -> None:
    assert chain.first_hash("a") != chain.first_hash("b")

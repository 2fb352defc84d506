"""A result: what is known of its bytes is known of no others."""

from dataclasses import replace

from thoughtgate.core.calls import Result


def test_what_a_result_spells_is_forgotten_with_its_bytes() -> None:
    raw = b'{"content":[]}'
    result = Result(raw=raw, parsed=(raw, {"content": []}))
    assert result.value == {"content": []}
    assert replace(result, notes=("x",)).value == {"content": []}
    assert replace(result, raw=b'{"content":[],"_meta":{}}').value is None
    assert Result(raw=raw).value is None

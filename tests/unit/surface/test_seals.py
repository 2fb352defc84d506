"""Seals: what opens, and what does not."""

import pytest

from thoughtgate.surface.seals import Seal

VALUE = {"a": 10**30, "b": [None, "å"]}


def test_what_was_sealed_opens_as_it_was() -> None:
    seal = Seal(b"k", "p")
    assert seal.open(seal.seal(VALUE)) == VALUE
    assert Seal(b"k", "p").open(seal.seal(VALUE)) == VALUE


def test_two_seals_of_one_value_differ_and_show_nothing() -> None:
    seal = Seal(b"k", "p")
    assert seal.seal(VALUE) != seal.seal(VALUE)
    assert seal.seal({"secret": "x" * 40}).isascii()


@pytest.mark.parametrize("token", ["", "A", "====", "å", "a b", "-" * 40, "A" * 70_000])
def test_nonsense_does_not_open(token: str) -> None:
    assert Seal(b"k", "p").open(token) is None


def test_a_changed_token_or_another_key_or_purpose_does_not_open() -> None:
    token = Seal(b"k", "p").seal(VALUE)
    assert Seal(b"other", "p").open(token) is None
    assert Seal(b"k", "q").open(token) is None
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert Seal(b"k", "p").open(changed) is None
    assert Seal(b"k", "p").open(token + "-TAMPERED") is None

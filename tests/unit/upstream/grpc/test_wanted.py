"""Which services and methods somebody has asked for."""

import pytest

from thoughtgate.upstream.grpc.wanted import Wanted

OFFERED = ("a.One", "a.Two", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection")


@pytest.mark.parametrize(
    ("patterns", "services"),
    [
        ((), ()),
        (("*",), ("a.One", "a.Two")),
        (("a.Two",), ("a.Two",)),
        (("a.One/Get",), ("a.One",)),
        ((" /a.One/Get ",), ("a.One",)),
        (("grpc.health.v1.Health", "grpc.channelz.v1.Channelz"), ()),
    ],
)
def test_only_what_was_named_is_wanted_and_never_the_plumbing(
    patterns: tuple[str, ...], services: tuple[str, ...]
) -> None:
    assert Wanted(patterns).services(OFFERED) == services


def test_a_method_is_wanted_by_its_own_name_or_with_its_service() -> None:
    wanted = Wanted(("a.One/Get", "a.Two", "a.Two/Get"))
    assert wanted.method("a.One", "Get")
    assert not wanted.method("a.One", "Put")
    assert wanted.method("a.Two", "Put")
    assert Wanted(("*",)).method("a.One", "Put")


def test_what_was_named_and_is_not_there_can_be_said() -> None:
    wanted = Wanted(("a.One/Get", "a.One/Gone", "b.Three", "c.Four/Go", "*"))
    assert wanted.missing(OFFERED) == ("b.Three", "c.Four")
    assert wanted.strange("a.One", ["Get", "Put"]) == ("Gone",)

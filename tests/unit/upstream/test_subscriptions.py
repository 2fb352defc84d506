"""Who follows which resources: bounds that hold whatever clients want and servers say."""

import pytest

from thoughtgate.core.errors import Overloaded
from thoughtgate.testing.values import Silence
from thoughtgate.upstream.subscriptions import MAX_TOGETHER, MAX_URI, Subscriptions


def test_who_follows_what_holds_a_resource_hears_of_it() -> None:
    kept, one, other = Subscriptions(), Silence(), Silence()
    kept.add("file:///a", one)
    kept.add("file:///a/", other)
    assert kept.of("file:///a/b?q") == [one, other]
    assert kept.of("file:///a") == [one]
    assert kept.of("file:///ab") == []
    assert kept.of("file://") == []


def test_a_resource_with_a_name_of_nothing_but_ends_costs_next_to_nothing() -> None:
    """Every end was once a reason to look for what it ends: an hour for a name of 4 MB."""
    kept, one = Subscriptions(), Silence()
    for length in range(1, 100):
        kept.add("/" * length, one)
    assert kept.of("/" * 4_000_000) == [one]


def test_what_is_followed_fits_into_one_request_to_its_server() -> None:
    kept, one = Subscriptions(), Silence()
    uris = [f"{number:0>{MAX_URI}}" for number in range(MAX_TOGETHER // MAX_URI)]
    for uri in uris:
        assert kept.add(uri, one)
    with pytest.raises(Overloaded):
        kept.add("x", one)
    assert not kept.add(uris[0], Silence())
    assert kept.leave(one) == tuple(sorted(uris[1:]))
    assert kept.add("x", one)

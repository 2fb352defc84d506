"""What servers list beside tools is remembered, so that lists survive a restart."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.support.registries import open_in
from thoughtgate.core.servers import HttpTransport
from thoughtgate.registry.store import Registry
from thoughtgate.testing.values import make_listing, make_server

LISTING = replace(
    make_listing("docs", "read"),
    prompts=({"name": "p", "big": 2**70, "none": None},),
    resources=({"uri": "a:b", "name": "b"},),
    templates=({"uriTemplate": "a:{x}", "name": "x"},),
    capabilities={"resources": {"subscribe": True}},
)


def test_everything_that_was_listed_comes_back_after_a_restart(folder: Path) -> None:
    first = open_in(folder)
    first.record_listing(LISTING)
    first.close()
    again = open_in(folder)
    got = again.with_known_offers(replace(make_listing("docs"), tools=again.known_tools("docs")))
    assert got == replace(LISTING, instructions=got.instructions)
    again.close()


def test_only_another_listing_raises_the_revision(registry: Registry) -> None:
    registry.record_listing(LISTING)
    before = registry.revision()
    registry.record_listing(LISTING)
    assert registry.revision() == before
    registry.record_listing(replace(LISTING, prompts=()))
    assert registry.revision() > before


def test_workers_that_hear_the_same_listing_at_once_make_one_version_and_one_change(
    folder: Path, registry: Registry
) -> None:
    before = registry.revision()
    others = [open_in(folder) for _ in range(3)]
    try:
        with ThreadPoolExecutor(len(others)) as threads:
            for _ in range(4):
                list(threads.map(lambda one: one.record_listing(LISTING), others))
    finally:
        for one in others:
            one.close()
    assert registry.revision() == before + 1
    assert len(registry.tool_history("docs", "read")) == 1


def test_what_a_server_offered_elsewhere_or_before_it_was_removed_is_forgotten(
    registry: Registry,
) -> None:
    bare = make_listing("docs")
    here = make_server("docs", transport=HttpTransport(url="http://127.0.0.1:1/mcp"))
    registry.put_server(here)
    registry.record_listing(LISTING)
    registry.put_server(here)
    assert registry.with_known_offers(bare).prompts
    registry.put_server(replace(here, transport=HttpTransport(url="http://127.0.0.1:2/mcp")))
    assert registry.with_known_offers(bare) == bare
    registry.record_listing(LISTING)
    registry.remove_server("docs")
    assert registry.with_known_offers(bare) == bare

"""The keeper: what is listed follows the registry of a running gateway."""

from dataclasses import replace
from pathlib import Path

from tests.support.waiting import until
from thoughtgate.app.admission import Parts
from thoughtgate.app.compose import App, opened
from thoughtgate.config.files import load
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.core.tools import Effect
from thoughtgate.testing.fake_http import fake_http
from thoughtgate.testing.values import make_listing, make_server


def listed(app: App) -> int:
    return sum(tool.server == "s" for tool in app.gateway.catalog.tools)


async def test_a_server_pointed_elsewhere_no_longer_lists_the_tools_of_its_old_place(
    tmp_path: Path,
) -> None:
    async with (
        fake_http() as endpoint,
        opened(load(None, {"THOUGHTGATE_HOME": str(tmp_path)}), {}) as app,
    ):
        app.registry.put_server(Server(name="s", transport=HttpTransport(url=endpoint.url)))
        await until(lambda: listed(app))
        nowhere = HttpTransport(url="http://127.0.0.1:1/mcp")
        app.registry.put_server(Server(name="s", transport=nowhere))
        await until(lambda: not listed(app))


async def test_a_part_is_made_anew_only_when_something_of_it_has_changed(tmp_path: Path) -> None:
    loaded = load(None, {"THOUGHTGATE_HOME": str(tmp_path)})
    async with opened(loaded, {}) as app:
        parts, server = Parts(app.registry), make_server("s")
        first = parts.of(make_listing("s", "a", "b"), server, loaded)
        assert parts.of(make_listing("s", "a", "b"), server, loaded) is first
        app.registry.set_effect("s", "a", Effect.READ)
        second = parts.of(make_listing("s", "a", "b"), server, loaded)
        assert second.tools[0].effect is Effect.READ
        trusting = replace(server, trusted=True)
        assert parts.of(make_listing("s", "a", "b"), trusting, loaded) is not second
        assert len(parts.of(make_listing("s", "a"), trusting, loaded).tools) == 1

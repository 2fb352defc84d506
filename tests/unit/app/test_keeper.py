"""The keeper: what is listed follows the registry of a running gateway."""

from pathlib import Path

from tests.support.waiting import until
from thoughtgate.app.compose import App, opened
from thoughtgate.config.files import load
from thoughtgate.core.servers import HttpTransport, Server
from thoughtgate.testing.fake_http import fake_http


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

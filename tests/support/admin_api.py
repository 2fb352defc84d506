"""An admin API over a composed gateway in memory; every reply is held to its own document."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.support.admin import asked
from tests.support.waiting import within
from thoughtgate.app.admin import Desk
from thoughtgate.app.admin_routes import ROUTES
from thoughtgate.app.compose import App, opened
from thoughtgate.config.files import load
from thoughtgate.sessions import Sessions
from thoughtgate.surface.admin import AdminFace, AdminSettings
from thoughtgate.surface.admin_openapi import document

TOKEN = "t" * 43
SECRET = "canary-4711"
DOCUMENT: Any = document(ROUTES, "1")
SETTINGS = """
[servers.filed]
url = "http://127.0.0.1:9/mcp?key=${SECRET}"
headers = { Authorization = "Bearer ${SECRET}" }
enabled = false

[domains.filed]
include = ["filed/*"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an operation answered; it fits the document, or the test has failed."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        return str(self.body["code"])


class Api:
    """An admin face over a composed gateway, in memory."""

    def __init__(self, app: App, environ: Mapping[str, str]) -> None:
        self.app = app
        self.environ = environ
        self.desk = desk = Desk(app=app, sessions=Sessions(clock=lambda: 0.0), environ=environ)
        settings = AdminSettings(token=TOKEN, version="1")
        self._face = AdminFace(ROUTES, desk, desk.revision, app.audit, settings)
        self.replies: list[str] = []
        self.called: set[str] = set()

    async def ask(self, name: str, body: Any = None, query: str = "", **given: str) -> Reply:
        """Call an operation; `If_Match="*"` is a header, other words are names in its path."""
        [route] = [route for route in ROUTES if route.name == name]
        names = {one: given.pop(one) for one in route.parameters}
        headers = {word.replace("_", "-"): value for word, value in given.items()}
        path = route.path.format(**names)
        answer = await within(
            asked(self._face, route.method, path, body, token=TOKEN, query=query, headers=headers)
        )
        reply = Reply(status=answer.status, headers=answer.headers, body=answer.body)
        self.replies.append(json.dumps(reply.body))
        self.called.add(name)
        held(route.path, route.method, reply)
        return reply

    async def good(self, name: str, body: Any = None, query: str = "", **given: str) -> Any:
        reply = await self.ask(name, body, query, **given)
        assert reply.status == 200, reply
        return reply.body


def held(path: str, method: str, reply: Reply) -> None:
    """Hold a reply against what the document says of its operation."""
    responses = DOCUMENT["paths"][path][method.lower()]["responses"]
    told = responses.get(str(reply.status)) or responses["default"]
    [(kind, content)] = told["content"].items()
    assert reply.headers["content-type"] == kind
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(reply.body)
    assert ("etag" in reply.headers) is ("ETag" in told.get("headers", {}))


@asynccontextmanager
async def api(folder: Path, settings: str = SETTINGS) -> AsyncIterator[Api]:
    config = folder / "thoughtgate.toml"
    config.write_text(settings, encoding="utf-8")
    environ = {"THOUGHTGATE_HOME": str(folder / "state"), "SECRET": SECRET}
    async with opened(load(config, environ), environ) as app:
        yield Api(app, environ)

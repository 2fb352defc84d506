"""What a page shows is run, in a home of its own, with real processes."""

import re
import socket
from pathlib import Path

import pytest

from tests.support.auth_server import sdk_with_login
from tests.support.pages import Command, SavedFile, acts, pages
from tests.support.source import name_of
from tests.support.terminal import Terminal
from thoughtgate.core.json import JsonObject
from thoughtgate.testing.openai_server import OpenAIServer

RUN = [page for page in pages() if any(isinstance(act, Command) for act in acts(page))]

PLAN = """{"steps": [
  {"id": "find", "goal": "find the logs", "tool": "logs__find_logs", "arguments": {}},
  {"id": "classify", "goal": "classify the errors", "tool": "logs__classify_errors",
   "arguments": {"paths": {"$from": "find#/structuredContent/paths"}}}]}"""


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return str(listening.getsockname()[1])


def model(request: JsonObject) -> str:
    """Say a word, plan, or read the number of errors out of what the steps found."""
    system, *turns = (str(message["content"]) for message in request["messages"])
    if "the one word" in system:
        return "ready"
    if "You plan a task" in system:
        return PLAN
    [total] = set(re.findall(r"total_errors\W+(\d+)", " ".join(turns)))
    return f"There are {total} errors."


@pytest.mark.timeout(180)  # some pages start twenty processes; one takes a second on a calm machine
@pytest.mark.parametrize("page", RUN, ids=name_of)
async def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    async with (
        OpenAIServer(model) as local,
        sdk_with_login() as guarded,
        Terminal(
            tmp_path,
            ports={
                "8765": free_port(),
                "50051": free_port(),
                "http://127.0.0.1:8080/v1": local.url,
                "https://tasks.example/mcp": guarded.url,
            },
        ) as terminal,
    ):
        for act in acts(page):
            if isinstance(act, SavedFile):
                terminal.save(act.name, act.text)
            else:
                await terminal.run(act.text, act.says)

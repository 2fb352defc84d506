"""A tool server that says what nobody asked for, too much of it, or the same thing twice.

Run it for stdio; `--era stateless` speaks the newer era. It reads nothing while it writes.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

Message = dict[str, Any]
OPEN = {"type": "object"}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
ASKED = {"method": "elicitation/create", "params": FORM}
INFO = {"name": "hostile", "version": "0"}
RESERVED = "io.modelcontextprotocol/"


class Talker:
    """The server; `answers` are the replies to what it asked, `methods` what it was sent."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.answers: list[Message] = []
        self.methods: list[str] = []
        self.cancelled: list[Any] = []
        self.nagging: set[Any] = set()
        self.open: dict[Any, Any] = {}
        self.last = 0
        self.starts = _count_starts(options.starts)
        self.tools: dict[str, Any] = {
            name.removeprefix("tool_"): getattr(self, name)
            for name in dir(self)
            if name.startswith("tool_")
        }

    def serve(self) -> None:
        """Answer one line after the other."""
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.answered(message)
            elif "id" in message:
                self.methods.append(message["method"])
                self.asked(message["id"], message["method"], message.get("params", {}))
            elif message["method"] == "notifications/cancelled":
                self.cancelled.append(message["params"]["requestId"])

    def asked(self, id_: Any, method: str, params: Message) -> None:
        if method in {"initialize", "server/discover"}:
            self.greet(id_, method)
        elif method.endswith("/list"):
            self.list(id_, method.removesuffix("/list"), params)
        elif method == "tools/call":
            self.tools[params["name"]](id_, params)
        elif method == "resources/read":
            told = {"uri": params["uri"], "text": self.options.label}
            reply(id_, {"contents": [told], **self.mark})
        else:
            reply(id_, {})

    def greet(self, id_: Any, method: str) -> None:
        newer = method == "server/discover"
        if newer is not (self.options.era == "stateless"):
            fail(id_, -32601)
            return
        able: Message = {} if self.options.undeclared else {"tools": {"listChanged": True}}
        if self.options.fickle and self.starts % 2:
            able |= {"prompts": {}, "resources": {}}
        if self.options.resources:
            able |= {"resources": {"subscribe": True}}
        said = {"capabilities": able, "serverInfo": INFO, "protocolVersion": "2025-11-25"}
        if newer:
            said = {
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": able,
                "_meta": {f"{RESERVED}serverInfo": INFO},
            }
        reply(id_, said)

    def list(self, id_: Any, kind: str, params: Message) -> None:
        found: Message = {"tools": [{"name": n, "inputSchema": OPEN} for n in self.tools]}
        if kind == "prompts":
            found = {"prompts": [{"name": "p"}]}
        elif kind == "resources":
            start, total = int(params.get("cursor", 0)), self.options.resources or 1
            stop = min(start + 5000, total)
            scheme = self.options.scheme
            each = [{"uri": f"{scheme}:{n}", "name": f"r{n}"} for n in range(start, stop)]
            found = {"resources": each, **({"nextCursor": str(stop)} if stop < total else {})}
        elif kind == "resources/templates":
            found = {"resourceTemplates": []}
        reply(id_, {**found, **self.mark})

    @property
    def mark(self) -> Message:
        return {"resultType": "complete"} if self.options.era == "stateless" else {}

    def done(self, id_: Any, **value: Any) -> None:
        reply(id_, {"content": [], "structuredContent": value, **self.mark})

    def answered(self, message: Message) -> None:
        self.answers.append(message)
        call = self.open.pop(message["id"], None)
        if call is None:
            return
        if call in self.nagging and call not in self.cancelled:
            self.ask(call)
        else:
            self.done(call, answer=message)

    def ask(self, call: Any = None, id_: Any = None) -> None:
        self.last += 1
        id_ = id_ or f"question-{self.last}"
        self.open[id_] = call
        say({"id": id_, **ASKED})

    def tool_echo(self, id_: Any, params: Message) -> None:
        self.done(id_, **params.get("arguments", {}))

    def tool_embed(self, id_: Any, params: Message) -> None:
        """Return a resource, a link to one, and the same URI where it is no URI."""
        uri = f"{self.options.scheme}:0"
        content = [
            {"type": "resource", "resource": {"uri": uri, "text": uri}},
            {"type": "resource_link", "uri": uri, "name": "r0"},
            {"type": "text", "text": uri},
        ]
        reply(id_, {"content": content, "structuredContent": {"uri": uri}, **self.mark})

    def tool_update(self, id_: Any, params: Message) -> None:
        """Tell that a resource has changed."""
        tell("notifications/resources/updated", uri=f"{self.options.scheme}:0")
        self.done(id_)

    def tool_pid(self, id_: Any, params: Message) -> None:
        self.done(id_, pid=os.getpid())

    def tool_crash(self, id_: Any, params: Message) -> None:
        os._exit(3)

    def tool_state(self, id_: Any, params: Message) -> None:
        codes = [one["error"]["code"] for one in self.answers if "error" in one]
        self.done(
            id_,
            good=len(self.answers) - len(codes),
            codes=codes[-100:],
            cancelled=len(self.cancelled),
            methods=self.methods,
            questions=self.last,
        )

    def tool_nag(self, id_: Any, params: Message) -> None:
        """Ask, and ask again after each answer, without end."""
        if self.options.era == "stateless":
            self.last += 1
            wanted = {"more": ASKED}
            reply(id_, {"resultType": "input_required", "inputRequests": wanted})
            return
        self.nagging.add(id_)
        self.ask(id_)

    def tool_ask(self, id_: Any, params: Message) -> None:
        """Ask once and return what came back."""
        self.ask(id_)

    def tool_crowd(self, id_: Any, params: Message) -> None:
        """Ask a thousand things at once, and wait for none of them."""
        for _ in range(1000):
            self.ask()
        self.done(id_)

    def tool_afterwards(self, id_: Any, params: Message) -> None:
        """Answer first, then ask."""
        self.done(id_)
        self.ask()

    def tool_twins(self, id_: Any, params: Message) -> None:
        """Ask two things under one id, and answer the question too."""
        self.ask(id_, "twin")
        self.ask(id_, "twin")
        reply("twin", {"action": "accept"})

    def tool_again(self, id_: Any, params: Message) -> None:
        """Answer three times."""
        for number in range(3):
            self.done(id_, number=number)

    def tool_gossip(self, id_: Any, params: Message) -> None:
        """Answer, then tell ten thousand things that belong to no call."""
        self.done(id_)
        for number in range(2500):
            tell("notifications/message", level="error", data=number)
            tell("notifications/tools/list_changed")
            tell("notifications/resources/updated", uri="many:1")
            tell("notifications/odd", number=number)

    def tool_pings(self, id_: Any, params: Message) -> None:
        """Send `count` pings with long ids, and read no answer meanwhile."""
        for number in range(int(params["arguments"]["count"])):
            say({"id": f"{number:0250}", "method": "ping"})
        self.done(id_)

    def tool_sleep(self, id_: Any, params: Message) -> None:
        """Read nothing any more."""
        signal.pause()

    def tool_spawn(self, id_: Any, params: Message) -> None:
        """Leave a child behind that has our streams, prints to them, and outlives us."""
        if os.fork() == 0:
            sys.stdout.write("a line of somebody else's\n")
            sys.stdout.flush()
            os.execvp("sleep", ["sleep", "1000"])
        self.done(id_, pid=os.getpid())


def _count_starts(path: str) -> int:
    if not path:
        return 0
    with Path(path).open("a+", encoding="utf-8") as file:
        file.write("started\n")
        file.seek(0)
        return len(file.readlines())


def say(message: Message) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(method: str, **params: Any) -> None:
    say({"method": method, "params": params})


def reply(id_: Any, result: Message) -> None:
    say({"id": id_, "result": result})


def fail(id_: Any, code: int) -> None:
    say({"id": id_, "error": {"code": code, "message": "no"}})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", default="handshake")
    parser.add_argument("--undeclared", action="store_true", help="declare nothing, list all")
    parser.add_argument("--fickle", action="store_true", help="declare more at every odd start")
    parser.add_argument("--starts", default="", help="a file that counts the starts")
    parser.add_argument("--resources", type=int, default=0, help="how many to list")
    parser.add_argument("--scheme", default="many", help="what their URIs begin with")
    parser.add_argument("--label", default="", help="what each of them says")
    Talker(parser.parse_args()).serve()


if __name__ == "__main__":
    main()

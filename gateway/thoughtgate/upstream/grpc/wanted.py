"""Which services and methods of a gRPC server become tools: those that somebody named, no others.

Never the ones that tell of the server itself: reflection, health and channelz.
"""

from collections.abc import Iterable

EVERYTHING = "*"

_PLUMBING = ("grpc.reflection.", "grpc.health.", "grpc.channelz.")


class Wanted:
    """What is wanted by `package.Service`, `package.Service/Method` or `*`."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._services: set[str] = set()
        self._methods: dict[str, set[str]] = {}
        for pattern in patterns:
            service, slash, method = pattern.strip().strip("/").partition("/")
            if slash:
                self._methods.setdefault(service, set()).add(method)
            else:
                self._services.add(service)

    def services(self, offered: Iterable[str]) -> tuple[str, ...]:
        """Return those of the offered services that are wanted, in the order of their names."""
        return tuple(sorted({name for name in offered if self._wants(name)}))

    def missing(self, offered: Iterable[str]) -> tuple[str, ...]:
        """Return the services that are wanted by name and not offered."""
        named = (self._services - {EVERYTHING}) | self._methods.keys()
        return tuple(sorted(named - set(offered)))

    def method(self, service: str, name: str) -> bool:
        """Tell whether a method of a wanted service is wanted."""
        whole = EVERYTHING in self._services or service in self._services
        return whole or name in self._methods.get(service, ())

    def strange(self, service: str, names: Iterable[str]) -> tuple[str, ...]:
        """Return the methods that are wanted by name and are not among those of the service."""
        return tuple(sorted(self._methods.get(service, set()) - set(names)))

    def _wants(self, service: str) -> bool:
        if plumbing(service):
            return False
        return EVERYTHING in self._services or service in self._services or service in self._methods


def plumbing(service: str) -> bool:
    """Tell whether a service tells of the server itself, and so never becomes tools."""
    return service.startswith(_PLUMBING)

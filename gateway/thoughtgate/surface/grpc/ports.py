"""What the gRPC face asks of the gateway. Never an implementation: `calls.gateway` has it."""

from collections.abc import Mapping
from typing import Any, Protocol

import grpc

from thoughtgate.core.domains import Domain
from thoughtgate.surface.ports import Gateway

Context = grpc.aio.ServicerContext[Any, Any]
"""One RPC as gRPC shows it to whoever serves it."""


class DomainGateway(Gateway, Protocol):
    """A gateway that says which domains there are."""

    @property
    def domains(self) -> Mapping[str, Domain]:
        """Return the domains by name."""
        ...

"""A gRPC server of somebody else's for tests: a shop with a method of each kind.

Never knows the gateway; what it was sent is kept for the test to look at.
"""

import asyncio
import functools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import Message
from grpc import aio
from grpc_tools import protoc

DATA = Path(__file__).parents[1] / "data" / "grpc"
ORDERS = "shop.v1.Orders"
LEDGER = "shop.v1.Ledger"
V1 = "grpc.reflection.v1"
V1ALPHA = "grpc.reflection.v1alpha"


def compiled(folder: Path, names: Sequence[str], *, comments: bool = False) -> bytes:
    """Return the descriptor set of .proto files of a folder and of all that they import."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "set.binpb"
        more = ["--include_source_info"] if comments else []
        arguments = ["protoc", f"-I{folder}", f"--descriptor_set_out={out}", "--include_imports"]
        assert protoc.main([*arguments, *more, *names]) == 0
        return out.read_bytes()


@functools.cache
def orders_set(*, comments: bool = False) -> bytes:
    """Return the descriptor set of the shop."""
    with tempfile.TemporaryDirectory() as place:
        shop = Path(place) / "shop"
        shutil.copytree(DATA, shop)
        return compiled(Path(place), ["shop/orders.proto"], comments=comments)


def files_of(descriptors: bytes) -> dict[str, bytes]:
    """Return the serialised files of a descriptor set by their names."""
    files = FileDescriptorSet.FromString(descriptors).file
    return {file.name: file.SerializeToString() for file in files}


@functools.cache
def orders_pool() -> descriptor_pool.DescriptorPool:
    """Return a pool that knows the shop."""
    pool = descriptor_pool.DescriptorPool()
    for data in files_of(orders_set()).values():
        pool.AddSerializedFile(data)
    return pool


@functools.cache
def message(name: str) -> type[Message]:
    """Return the class of a message of the shop."""
    return message_factory.GetMessageClass(orders_pool().FindMessageTypeByName(f"shop.v1.{name}"))


Behaviour = Callable[["Shop", aio.ServicerContext[Any, Any]], Any]


@dataclass
class Shop:
    """The shop: what it was asked, with which metadata, and what became of each RPC.

    `before` runs first in each method that it has an entry for, by the method's name; `endless`
    are watches that tell the first change again and again.
    """

    seen: list[tuple[str, Any]] = field(default_factory=list)
    metadata: list[dict[str, str | bytes]] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    before: dict[str, Behaviour] = field(default_factory=dict)
    after_each: asyncio.Event | None = None
    withdrawn: set[str] = field(default_factory=set)

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handlers of both services."""
        return _Handlers(self)

    async def get_order(self, request: Any, context: Any) -> Any:
        """Return an order of one item."""
        return message("Order")(
            number=request.number, items=["tea"], price={"currency": "EUR", "cents": 250}
        )

    async def place_order(self, request: Any, context: Any) -> Any:
        """Return what was placed."""
        return request

    async def watch_order(self, request: Any, context: Any) -> AsyncIterator[Any]:
        """Tell changes, as many as asked; wait before each when the test says so."""
        for at in range(request.changes):
            if at and self.after_each is not None:
                await self.after_each.wait()
            yield message("Order")(number=request.number, items=[f"change {at + 1}"])

    async def sum_orders(self, requests: AsyncIterator[Any], context: Any) -> Any:
        """Sum the prices up."""
        cents = 0
        async for order in requests:
            self.seen.append(("SumOrders", order))
            cents += order.price.cents
        return message("Money")(currency="EUR", cents=cents)

    async def price_orders(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Tell each price."""
        async for order in requests:
            self.seen.append(("PriceOrders", order))
            yield order.price


_KINDS: Mapping[str, tuple[str, bool, bool, Callable[..., Any]]] = {
    "GetOrder": ("GetOrderRequest", False, False, Shop.get_order),
    "PlaceOrder": ("Order", False, False, Shop.place_order),
    "WatchOrder": ("WatchOrderRequest", False, True, Shop.watch_order),
    "SumOrders": ("Order", True, False, Shop.sum_orders),
    "PriceOrders": ("Order", True, True, Shop.price_orders),
}


class _Handlers(grpc.GenericRpcHandler):
    """Finds the method of the shop that an RPC is for."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of an RPC, None for one of somebody else's."""
        _, service, name = details.method.split("/")
        if service != ORDERS or name not in _KINDS or name in self._shop.withdrawn:
            return None
        request, client, server, behave = _KINDS[name]
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[client, server]
        run = self._told(name, behave) if server else self._answered(name, behave)
        return make(
            run,
            request_deserializer=message(request).FromString,
            response_serializer=lambda one: one.SerializeToString(),
        )

    async def _begun(self, name: str, request: Any, context: Any) -> None:
        self._shop.metadata.append(dict(context.invocation_metadata()))
        if isinstance(request, Message):
            self._shop.seen.append((name, request))
        if name in self._shop.before:
            await self._shop.before[name](self._shop, context)

    def _answered(self, name: str, behave: Callable[..., Any]) -> Callable[..., Any]:
        async def run(request: Any, context: Any) -> Any:
            try:
                await self._begun(name, request, context)
                return await behave(self._shop, request, context)
            except asyncio.CancelledError:
                self._shop.over.append(f"{name} cancelled")
                raise

        return run

    def _told(self, name: str, behave: Callable[..., Any]) -> Callable[..., Any]:
        async def run(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                await self._begun(name, request, context)
                async for one in behave(self._shop, request, context):
                    yield one
            except (asyncio.CancelledError, GeneratorExit):
                self._shop.over.append(f"{name} cancelled")
                raise

        return run


@asynccontextmanager
async def serving(*handlers: grpc.GenericRpcHandler, port: int = 0) -> AsyncIterator[int]:
    """Serve handlers on loopback and yield the port."""
    server = aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(handlers)
    bound = server.add_insecure_port(f"127.0.0.1:{port}")
    assert bound
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(0)

"""The tests' shop by grpclib, another implementation of gRPC, with its own reflection.

Never reaches beyond the loopback address. Run as a module it prints its port on one line.
"""

import asyncio
import socket
import sys
from collections.abc import Mapping
from typing import Any

from grpclib.const import Cardinality, Handler
from grpclib.reflection.service import ServerReflection
from grpclib.server import Server

from tests.support.grpc_orders import ORDERS, message, orders_pool


class Orders:
    """The shop's handlers, as grpclib takes them."""

    def __mapping__(self) -> Mapping[str, Handler]:
        """Return the handler of each method by its path."""
        return {
            f"/{ORDERS}/{name}": Handler(run, kind, message(request), message(reply))
            for name, run, kind, request, reply in (
                ("GetOrder", self._get, Cardinality.UNARY_UNARY, "GetOrderRequest", "Order"),
                ("PlaceOrder", self._place, Cardinality.UNARY_UNARY, "Order", "Order"),
                ("WatchOrder", self._watch, Cardinality.UNARY_STREAM, "WatchOrderRequest", "Order"),
                ("SumOrders", self._sum, Cardinality.STREAM_UNARY, "Order", "Money"),
                ("PriceOrders", self._price, Cardinality.STREAM_STREAM, "Order", "Money"),
            )
        }

    async def _get(self, stream: Any) -> None:
        request = await stream.recv_message()
        order = message("Order")(number=request.number, items=["tea"], labels={"from": "grpclib"})
        await stream.send_message(order)

    async def _place(self, stream: Any) -> None:
        await stream.send_message(await stream.recv_message())

    async def _watch(self, stream: Any) -> None:
        request = await stream.recv_message()
        for at in range(request.changes):
            order = message("Order")(number=request.number, items=[f"change {at + 1}"])
            await stream.send_message(order)

    async def _sum(self, stream: Any) -> None:
        cents = 0
        async for order in stream:
            cents += order.price.cents
        await stream.send_message(message("Money")(currency="EUR", cents=cents))

    async def _price(self, stream: Any) -> None:
        async for order in stream:
            await stream.send_message(order.price)


async def serve() -> None:
    """Serve until the process is ended."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = Server(ServerReflection.extend([Orders()], pool=orders_pool()))
    await server.start(sock=listening)
    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve())

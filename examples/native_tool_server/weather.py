"""A tool server in ten lines: `python examples/native_tool_server/weather.py --grpc 127.0.0.1:0`.

Never asks a real weather service.
"""

from typing import Annotated, Literal

from thoughtgate_servers.native import Call, ToolFailed, ToolServer

server = ToolServer("weather", version="1.0", instructions="Ask for towns by their English names.")
DEGREES = {"Oslo": [-3, 1, 6], "Rome": [9, 14, 19]}


@server.tool(read_only=True)
async def forecast(
    town: Annotated[str, "Where."], call: Call, unit: Literal["celsius", "kelvin"] = "celsius"
) -> list[float]:
    """Return the temperatures of the next three days."""
    if town not in DEGREES:
        raise ToolFailed(message=f"no forecast for {town}; there is one for {', '.join(DEGREES)}")
    await call.progress(1, 1, "looked it up")
    return [degrees + (273.15 if unit == "kelvin" else 0) for degrees in DEGREES[town]]


if __name__ == "__main__":
    server.main()

"""Write a tool server in Python in a few lines: functions with type hints become tools.

Never needs more than this import: `ToolServer`, and `Call`, `Image`, `ToolFailed` where wanted.
"""

from thoughtgate_servers.native.call import Call, GivenUp
from thoughtgate_servers.native.server import ToolServer
from thoughtgate_servers.native.signature import BadSignature
from thoughtgate_servers.table import Image, Reply, ToolFailed

__all__ = ["BadSignature", "Call", "GivenUp", "Image", "Reply", "ToolFailed", "ToolServer"]

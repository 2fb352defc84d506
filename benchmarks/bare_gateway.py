"""A gateway with stages taken out of the path of its calls, to see what they cost.

Never a setting: whether calls are checked and written down is not for users to switch off.

    python bare_gateway.py validation,audit --config FILE serve
"""

import sys
from typing import Any

from thoughtgate.calls import path
from thoughtgate.cli import main
from thoughtgate.core.calls import Call, Result
from thoughtgate.core.ports import Next

STAGES = {"validation": ("checked_in", "checked_out"), "audit": ("audited",)}


async def passed(call: Call, call_next: Next, **means: Any) -> Result:
    """Do nothing."""
    del means
    return await call_next(call)


if __name__ == "__main__":
    for part in filter(None, sys.argv.pop(1).split(",")):
        for name in STAGES[part]:
            assert callable(getattr(path, name)), name
            setattr(path, name, passed)
    main()

"""What the parent of several workers and each of them say to one another, a letter each.

Never more than that: what a worker does is its own affair.
"""

from enum import Enum


class Order(bytes, Enum):
    """What the parent says; `TAKE` comes with the descriptor of a client's connection."""

    BEGIN = b"b"
    LIST = b"l"
    TAKE = b"t"
    RELOAD = b"r"
    STOP = b"s"
    ANSWER = b"a"


class Told(bytes, Enum):
    """What a worker says: that it is composed and reached by the others, serves, still lives."""

    OPEN = b"o"
    READY = b"r"
    HERE = b"h"

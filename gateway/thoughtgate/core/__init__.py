"""Core values: nouns, errors and the small Protocols. Standard library only; never does I/O."""

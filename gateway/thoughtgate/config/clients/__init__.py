"""The programs that connect to the gateway: where each keeps its settings, and how they are edited.

Never runs a client, and never touches more of its settings than the one entry of the gateway.
"""

"""A tool table over gRPC, by the protocol `thoughtgate.tools.v1`.

Never imported by a server that is carried over stdio or HTTP: gRPC costs start-up time.
"""

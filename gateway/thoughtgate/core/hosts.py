"""Names of hosts, as configuration and command lines give them. Never resolves one."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by itself, whatever a name service may say."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

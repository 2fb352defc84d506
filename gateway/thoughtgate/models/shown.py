"""Addresses of model servers, fit to be shown.

Never shows what may be secret in one: user, password and query.
"""

from urllib.parse import urlsplit


def shown_url(url: str) -> str:
    """Return scheme, host, port and path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

"""Shipped fakes for tests of plug-ins and of the gateway itself."""

"""Composition: settings become objects, once. Decides nothing about a call."""

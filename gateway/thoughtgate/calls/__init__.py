"""The one path of one call: an ordered list of stages."""

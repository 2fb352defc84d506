"""Spans: tuples on the path, SDK spans in the exporter's thread."""

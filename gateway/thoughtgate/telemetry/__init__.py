"""Spans: tuples on the path, OTLP bytes in the exporter's thread."""

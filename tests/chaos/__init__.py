"""Chaos: a gateway under random faults, and a checker that reads what happened."""

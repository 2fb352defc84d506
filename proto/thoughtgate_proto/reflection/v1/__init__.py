"""Version 1 of it; v1alpha has the same shape."""

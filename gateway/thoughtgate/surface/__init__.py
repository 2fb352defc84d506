"""What clients see: each face decodes into core values and back."""

"""What clients see: each face decodes its protocol into core values and back. Never decides."""

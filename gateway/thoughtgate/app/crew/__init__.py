"""Several workers of one gateway: their parent, which hands connections out, and each of them."""

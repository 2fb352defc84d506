"""What may be wrong with a gateway and its surroundings, found without changing anything."""

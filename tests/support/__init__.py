"""What several tests share: bounded waiting, free ports, real processes."""

"""One file per step, numbered. Never imports `tables`: a step stays what it was."""

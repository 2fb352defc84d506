"""Generated from the .proto file beside it by `make proto`; never written by hand."""

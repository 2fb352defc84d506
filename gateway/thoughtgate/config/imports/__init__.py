"""Other clients' lists of tool servers, read as what they mean; nothing here opens a file."""

"""Where the work on parts runs. An engine is one function: parts and work in, the numbers of finished parts out."""

"""Where the work on parts runs. An engine is a function that takes parts and the work, and yields the numbers of finished parts."""

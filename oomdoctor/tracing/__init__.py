"""Memory counted in the model's own code: a few layers of it run with tensors that have sizes and no values (needs torch)."""

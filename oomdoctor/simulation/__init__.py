"""A model of PyTorch's CUDA caching allocator: what a sequence of requests makes it reserve. Needs no torch."""

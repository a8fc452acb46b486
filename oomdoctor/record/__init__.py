"""A run that is watched: the wrapper, the sampler, the recorder inside, and the evidence folder."""

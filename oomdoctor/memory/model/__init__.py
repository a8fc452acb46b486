"""What part of the model is on one GPU: parameters, weights, what is trained, copies."""

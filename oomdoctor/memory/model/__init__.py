"""What of the model lies on one card: parameters, weights, what is trained, copies."""

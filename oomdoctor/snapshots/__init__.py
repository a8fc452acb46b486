"""Memory snapshots of PyTorch: read without running anything, played back, explained."""

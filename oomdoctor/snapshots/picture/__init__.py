"""What is drawn of a device: the bytes over time by holder, and the segments at the moment that matters; bounded, whatever the trace."""

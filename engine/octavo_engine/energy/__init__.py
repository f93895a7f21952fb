"""Energy: what the device uses, what that is for each token, and what it costs."""

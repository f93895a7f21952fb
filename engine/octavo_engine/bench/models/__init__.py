"""The suite "models": how fast a model opens, what its layouts take and what they cost."""

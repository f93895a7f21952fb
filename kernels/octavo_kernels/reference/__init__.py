"""Plain torch twins of the operations, the truth in tests. Clear before fast; they run on any device."""

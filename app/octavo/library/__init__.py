"""Models on this machine: where they lie and which one is meant. Knows no Qt and no engine."""

"""Models on disk: headers, where each tensor lies, what they say of a model. Loads no torch."""

"""What a decoder needs to know about a model: a table of families, and the numbers of one model. Loads no torch."""

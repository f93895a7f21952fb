"""Public functions of the operations: what each computes, and which implementations there are."""

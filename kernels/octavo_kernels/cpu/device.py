"""Which devices the compiled kernels serve."""


def declines(device: str) -> str | None:
    """Compiled kernels read the memory of the processor."""
    return None if device == "cpu" else f"these kernels run on the processor, not on {device}"

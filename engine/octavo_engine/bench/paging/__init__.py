"""The parts of the paging suite, one module each, with one function `measure`."""

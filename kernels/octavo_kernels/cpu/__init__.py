"""Implementations for processors, compiled by numba."""

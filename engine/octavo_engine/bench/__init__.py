"""Benchmarks of the engine through its public interface, so that they measure what users get."""

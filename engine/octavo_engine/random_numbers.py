"""Random numbers that depend on a counter only, so that neither company, preemption nor forks shift them.

Mixing function: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
"""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def _mix(value: int) -> int:
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, index: int, position: int) -> float:
    """The number in [0, 1) for output `position` of answer `index` under `seed`, with 53 random bits."""
    return (_mix(_mix(_mix(seed & _MASK) ^ index) ^ position) >> 11) / (1 << 53)

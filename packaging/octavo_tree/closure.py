"""Which installed distributions Octavo needs to run, found from their metadata: test tools stay out."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def needed_distributions(name: str) -> tuple[Distribution, ...]:
    """Everything that `name` requires on this system, directly or not, without itself; sorted by name.

    Raises PackageNotFoundError when the environment lacks a requirement: it is broken then.
    """
    found: dict[str, Distribution] = {}
    # Pairs of a distribution and the extras that are asked of it.
    waiting: list[tuple[Distribution, frozenset[str]]] = [(distribution(name), frozenset())]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        current, extras = waiting.pop()
        for text in current.requires or ():
            need = Requirement(text)
            if not _applies(need, extras):
                continue
            key = canonicalize_name(need.name)
            asked = (key, frozenset(need.extras))
            if asked not in seen:
                seen.add(asked)
                found[key] = distribution(need.name)
                waiting.append((found[key], asked[1]))
    return tuple(found[key] for key in sorted(found))


def _applies(need: Requirement, extras: frozenset[str]) -> bool:
    if need.marker is None:
        return True
    return any(need.marker.evaluate({"extra": extra}) for extra in (extras or {""}))

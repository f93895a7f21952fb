"""Step: one part of the set-up, safe to repeat; and the usual kind, which a stamp marks as done for its inputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

from octavo_dev.project_tree import ProjectTree
from octavo_dev.stamp import Stamp


class Step(Protocol):
    """What the set-up asks of each of its parts."""

    @property
    def title(self) -> str:
        """What the step brings, in two or three words."""

    def is_done(self) -> bool:
        """Whether there is nothing to do; takes milliseconds."""

    def run(self) -> None:
        """Do it. Raises SetupError."""


@dataclass(frozen=True)
class StampedStep(ABC):
    """A step that is done when its stamp holds the fingerprint of its inputs as they are now."""

    tree: ProjectTree
    name: ClassVar[str]
    heading: ClassVar[str]

    @property
    def title(self) -> str:
        """What the step brings."""
        return self.heading

    @property
    def stamp(self) -> Stamp:
        """The mark of this step."""
        return Stamp(self.tree.stamps / self.name)

    @abstractmethod
    def key(self) -> str:
        """Fingerprint of everything that the outcome depends on."""

    @abstractmethod
    def work(self) -> None:
        """Bring about the outcome. Raises SetupError."""

    def is_done(self) -> bool:
        """Whether the outcome stands for the inputs as they are now."""
        return self.stamp.matches(self.key())

    def run(self) -> None:
        """Work, then mark as done: an interruption leaves no mark. Raises SetupError."""
        key = self.key()
        self.work()
        self.stamp.write(key)

"""The set-up: its steps in order. A step that is done is skipped, so an interrupted set-up goes on where it stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Protocol

from octavo_dev.compiled_kernels import CompiledKernels
from octavo_dev.debian import SystemLibraries
from octavo_dev.environment import Environment, Project, Requirements, Tools, Torch
from octavo_dev.pip import Pip
from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import disk_error
from octavo_dev.stamp import Stamp
from octavo_dev.starter_model import StarterModel, remove_leftovers
from octavo_dev.turn import turn


class Step(Protocol):
    """One part of the set-up, safe to repeat."""

    @property
    def title(self) -> str:
        """What the step brings, in two or three words."""

    def is_done(self) -> bool:
        """Whether there is nothing to do; takes milliseconds."""

    def run(self) -> None:
        """Do it. Raises SetupError."""


def steps(tree: ProjectTree) -> tuple[Step, ...]:
    """All steps, in the order in which they build on each other."""
    system: tuple[Step, ...] = () if os.name == "nt" else (SystemLibraries(),)
    return (
        *system,
        Environment(tree),
        Tools(tree),
        Torch(tree),
        Requirements(tree),
        Project(tree),
        StarterModel(Pip(tree.python, tree.pip_log), tree.models, Stamp(tree.stamps / "starter-model")),
        CompiledKernels(tree),
    )


def set_up(tree: ProjectTree) -> bool:
    """Do whatever is not done yet; True when there was something. Raises SetupError."""
    todo = steps(tree)
    try:
        if all(step.is_done() for step in todo):
            return False
        with turn(tree.root):
            remove_leftovers(tree.models)
            _run(todo)
    except OSError as error:
        raise disk_error(error, tree.environment) from error
    return True


def _run(todo: Sequence[Step]) -> None:
    for number, step in enumerate(todo, start=1):
        if step.is_done():
            continue
        print(f"[{number}/{len(todo)}] {step.title}", flush=True)
        step.run()

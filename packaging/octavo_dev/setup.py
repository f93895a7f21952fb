"""The set-up: its steps in order. A step that is done is skipped, so an interrupted set-up goes on where it stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence

from octavo_dev.compiled_kernels import CompiledKernels
from octavo_dev.debian import SystemLibraries
from octavo_dev.environment import Environment
from octavo_dev.libraries import Libraries, Project, Tools
from octavo_dev.pip import Pip
from octavo_dev.project_tree import ProjectTree
from octavo_dev.setup_error import disk_error
from octavo_dev.stamp import Stamp
from octavo_dev.starter_model import StarterModel, remove_leftovers
from octavo_dev.step import Step
from octavo_dev.torch_build import TorchBuild
from octavo_dev.turn import turn


def steps(tree: ProjectTree) -> tuple[Step, ...]:
    """All steps, in the order in which they build on each other."""
    system: tuple[Step, ...] = () if os.name == "nt" else (SystemLibraries(),)
    return (
        *system,
        Environment(tree),
        Tools(tree),
        TorchBuild(tree),
        Libraries(tree),
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
            tree.pip_log.unlink(missing_ok=True)
            remove_leftovers(tree.models)
            _run(todo)
    except OSError as error:
        raise disk_error(error, tree.environment) from error
    return True


def _run(todo: Sequence[Step]) -> None:
    for number, step in enumerate(todo, start=1):
        if not step.is_done():
            print(f"[{number}/{len(todo)}] {step.title}", flush=True)
            step.run()

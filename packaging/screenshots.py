"""Takes the pictures of docs/screenshots from the running program: the real window, the real model, real answers.

Needs a screen, such as a virtual one of 1600 x 1000: `xvfb-run -a .venv/bin/python packaging/screenshots.py`
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer

from octavo.application import Application
from octavo.ui.main_window import MainWindow

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "screenshots"
LARGE, SMALL = (1440, 900), (880, 700)
QUESTIONS = (
    "What is the capital of France?",
    "Write a short poem about a lighthouse.",
    "Name the planets of the solar system as a list.",
    "Write a Python function that reverses a string, with a short explanation.",
)
DEADLINE_SECONDS = 120


def rest(milliseconds: int) -> None:
    """Let the program run."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def wait(condition: Callable[[], bool]) -> None:
    """Let the program run until `condition` holds. Raises TimeoutError."""
    end = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the program did not get there")
        rest(30)


def take(window: MainWindow, name: str, size: tuple[int, int] = LARGE) -> None:
    """Save one picture."""
    window.resize(*size)
    rest(250)
    window.grab().save(str(FOLDER / f"{name}.png"))
    print(f"{name}.png")


def ask(application: Application, window: MainWindow, question: str) -> None:
    """Ask in a new chat."""
    application.actions["chat.new"].trigger()
    window.composer.set_text(question)
    application.actions["message.send"].trigger()


def show_the_program(home: Path) -> None:
    """The pictures of a program that works."""
    application = Application(home=home)
    window = application.open_window()
    assert isinstance(window, MainWindow)
    application.actions["view.light"].trigger()
    take(window, "welcome-light")
    wait(application.is_idle)
    for question in QUESTIONS:
        ask(application, window, question)
    wait(lambda: len(window.transcript.source()) > 250 or application.is_idle())
    take(window, "main-light")
    application.actions["view.dark"].trigger()
    take(window, "main-dark")
    take(window, "narrow-dark", SMALL)
    application.close()


def show_a_problem(home: Path) -> None:
    """The picture of a model that cannot be opened."""
    broken = home / "notes.gguf"
    broken.write_text("These are notes, not a model.\n", encoding="utf-8")
    application = Application(home=home, argv=[str(broken)])
    window = application.open_window()
    assert isinstance(window, MainWindow)
    application.actions["view.light"].trigger()
    wait(window.notice.isVisible)
    take(window, "notice-light")
    application.close()


def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        show_the_program(Path(folder))
        show_a_problem(Path(folder))


if __name__ == "__main__":
    main()

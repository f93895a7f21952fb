"""An application over a scripted engine, closed afterwards with all of its threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from octavo.application import Application
from octavo.engine_client import FakeEngine

MakeApplication = Callable[..., Application]


@pytest.fixture
def make_application(qtbot: QtBot, tmp_path: Path) -> Iterator[MakeApplication]:
    """Makes applications; `home` may be shared by one after another."""
    made: list[Application] = []

    def make(engine: FakeEngine | None = None, *, home: Path | None = None, argv: tuple[str, ...] = ()) -> Application:
        application = Application(home=home or tmp_path / "home", engine=engine, argv=argv)
        made.append(application)
        return application

    yield make
    for application in made:
        application.close()
        application.deleteLater()
    qtbot.wait(0)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("octavo-")]

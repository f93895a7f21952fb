"""The notice tells what is wrong, offers what helps, and stays away when it was sent away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from octavo.application import Application
from octavo.engine_client import FakeEngine
from octavo.store import Store
from small_disk import mounted, needs_mount
from window_driver import ask, child, open_window, sources, until_idle

MakeApplication = Callable[..., Application]


def test_a_dismissed_notice_stays_away(make_application: MakeApplication, qtbot: QtBot, tmp_path: Path) -> None:
    model = tmp_path / "notes.gguf"
    model.write_text("These are notes.\n")
    application = make_application(argv=(str(model),))
    window = open_window(application, qtbot)
    qtbot.waitUntil(window.notice.isVisible, timeout=20_000)
    until_idle(application, qtbot)
    window.notice.dismiss()
    application.actions["window.new"].trigger()
    qtbot.wait(400)
    assert not window.notice.isVisible()


@needs_mount
def test_a_full_disk_is_told_and_the_question_goes_on_when_there_is_room(
    make_application: MakeApplication, qtbot: QtBot, tmp_path: Path
) -> None:
    with mounted(tmp_path / "disk", "size=3m") as disk:
        application = make_application(
            FakeEngine(script="It goes on.", tokens_per_second=5000, pages=40_000), home=disk / "home"
        )
        window = open_window(application, qtbot)
        ask(window, qtbot, "first")
        until_idle(application, qtbot)
        ballast = disk / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        window.composer.set_text("second " * 10_000)
        window.composer.submit()
        qtbot.waitUntil(window.notice.isVisible, timeout=20_000)
        assert "full" in window.notice.property("text")
        until_idle(application, qtbot)
        ballast.unlink()
        button = child(window, "actionButton")
        assert isinstance(button, QPushButton)
        button.click()
        until_idle(application, qtbot)
        assert not window.notice.isVisible(), window.notice.property("text")
        assert sources(window)[-1] == "It goes on."
        application.close()
        store = Store.open(disk / "home" / "octavo.db")
        (chat,) = store.chats()
        texts = [message.text[:8] for message in store.messages(chat.id)]
        store.close()
        assert texts == ["first", "It goes ", "second s", "It goes "]

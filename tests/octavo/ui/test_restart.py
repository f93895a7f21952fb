"""A chat goes on after a restart as if nothing had been: the real model, the real store, the real disk tier."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pytestqt.qtbot import QtBot

from octavo.application import Application
from octavo.store import Store
from octavo.ui.main_window import MainWindow
from window_driver import ask, open_window, spin_until

MakeApplication = Callable[..., Application]


def talk(application: Application, window: MainWindow, qtbot: QtBot, question: str) -> str:
    """Ask, stop the answer after a few words, and give the chat's id."""
    ask(window, qtbot, question)
    session = window.session
    assert session is not None
    spin_until(lambda: len(session.path[-1].text) > 20 or not session.is_active)
    session.stop()
    spin_until(application.is_idle)
    return session.chat.id


def test_a_chat_goes_on_without_reading_its_history_again(
    make_application: MakeApplication, qtbot: QtBot, tmp_path: Path, starter_model: Path
) -> None:
    home = tmp_path / "home"
    first = make_application(home=home, argv=(str(starter_model),))
    window = open_window(first, qtbot)
    chat = talk(first, window, qtbot, "Name three colours, and no more words than that.")
    first.close()
    assert list((home / "pages").glob("*.page"))

    second = make_application(home=home, argv=(str(starter_model),))
    window = open_window(second, qtbot)
    window.chatWanted.emit(chat)
    assert talk(second, window, qtbot, "And one more?") == chat
    second.close()
    store = Store.open(home / "octavo.db")
    messages = store.messages(chat)
    store.close()
    before, after = messages[1], messages[3]
    assert before.prompt_tokens is not None
    assert before.completion_tokens is not None
    assert after.cached_tokens is not None
    # All but the last page of what was read and written before.
    assert after.cached_tokens > before.prompt_tokens + before.completion_tokens - 17


def test_a_deleted_chat_takes_its_pages_along(
    make_application: MakeApplication, qtbot: QtBot, tmp_path: Path, starter_model: Path
) -> None:
    home = tmp_path / "home"
    application = make_application(home=home, argv=(str(starter_model),))
    window = open_window(application, qtbot)
    chat = talk(application, window, qtbot, "Tell me about the history of paper in one sentence.")
    pages = home / "pages"
    spin_until(lambda: bool(list(pages.glob("*.page"))))
    application._chats.delete(chat)
    spin_until(lambda: not [*pages.glob("*.page"), *pages.glob("*.owner")])
    application.close()

"""The window with a scripted engine: what a reader does, and what it then shows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QInputMethodEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from octavo.application import Application
from octavo.engine_client import FakeEngine
from octavo.ui.chat_list_model import Role
from window_driver import ask, child, echo, open_window, sources, until_idle

MakeApplication = Callable[..., Application]
NAMES = (
    "chatList newChatButton transcript jumpToLatest composer tokenCount sendButton stopButton modelPicker welcome "
    "notice statusLine"
)


def test_a_question_is_answered_and_kept(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script=echo, tokens_per_second=5000))
    window = open_window(application, qtbot)
    assert window.objectName() == "mainWindow"
    assert child(window, "welcome").isVisible()
    assert not child(window, "sendButton").isEnabled()
    ask(window, qtbot, "hello there")
    assert not child(window, "welcome").isVisible()
    until_idle(application, qtbot)
    assert sources(window) == ["hello there", "You said **hello there**."]
    transcript = window.transcript
    ids = transcript.property("messageIds")
    assert transcript.property("leafId") == ids[-1]
    answer = child(window, f"message-{ids[1]}")
    assert (answer.property("role"), answer.property("status")) == ("assistant", "complete")
    application.close()

    again = make_application(FakeEngine(script=echo))
    window = open_window(again, qtbot)
    index = window.chat_list.model().index(1, 0)
    assert index.data() == "hello there"
    window.chat_list.setCurrentIndex(index)
    assert sources(window) == ["hello there", "You said **hello there**."]


def test_names_are_there_once(make_application: MakeApplication, qtbot: QtBot) -> None:
    window = open_window(make_application(FakeEngine()), qtbot)
    for name in NAMES.split():
        child(window, name)
    roles = window.chat_list.model().roleNames().values()
    assert {"chatId", "title", "state", "unread"} <= {bytes(name.data()).decode() for name in roles}


def test_controls_have_names_for_screen_readers(make_application: MakeApplication, qtbot: QtBot) -> None:
    window = open_window(make_application(FakeEngine()), qtbot)
    for kind in (QPushButton, QToolButton):
        for button in window.findChildren(kind):
            if not button.objectName().startswith("qt_"):
                assert button.accessibleName() or button.text().strip(), button.objectName()


def test_several_chats_write_at_once(make_application: MakeApplication, qtbot: QtBot) -> None:
    engine = FakeEngine(script=lambda request: echo(request) * 30, tokens_per_second=400)
    application = make_application(engine)
    window = open_window(application, qtbot)
    for number in range(4):
        application.actions["chat.new"].trigger()
        ask(window, qtbot, f"chat {number}")
    qtbot.waitUntil(lambda: engine.stats().running == 4, timeout=5000)
    model = window.chat_list.model()
    states = [model.index(row, 0).data(Role.STATE) for row in range(model.rowCount())]
    assert states.count("streaming") + states.count("queued") == 4
    assert model.index(0, 0).data() == "Writing now"
    until_idle(application, qtbot)
    assert model.index(0, 0).data() == "Today"
    assert engine.stats().steps < 2 * 30 * len("You said **chat 0**.")


def test_stop_keeps_the_text_and_escape_stops(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script="word " * 5000, tokens_per_second=300))
    window = open_window(application, qtbot)
    ask(window, qtbot, "go")
    qtbot.waitUntil(lambda: len(window.transcript.source()) > 20, timeout=5000)
    stop = child(window, "stopButton")
    assert stop.isVisible()
    assert not child(window, "sendButton").isVisible()
    QTest.mouseClick(stop, Qt.MouseButton.LeftButton)
    until_idle(application, qtbot)
    said = window.transcript.source()
    assert 20 < len(said) < 5000
    answer = child(window, f"message-{window.transcript.property('leafId')}")
    assert answer.property("status") == "stopped"
    ask(window, qtbot, "again")
    qtbot.waitUntil(lambda: window.session is not None and window.session.is_active)
    qtbot.waitUntil(lambda: bool(window.transcript.source()), timeout=5000)
    application.actions["message.stop"].trigger()
    until_idle(application, qtbot)


def test_enter_sends_shift_enter_breaks_and_an_input_method_does_neither(
    make_application: MakeApplication, qtbot: QtBot
) -> None:
    application = make_application(FakeEngine(script=echo, tokens_per_second=5000))
    window = open_window(application, qtbot)
    edit = window.composer.edit
    QTest.keyClicks(edit, "one")
    QTest.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(edit, "two")
    edit.inputMethodEvent(QInputMethodEvent("さ", []))
    QTest.keyClick(edit, Qt.Key.Key_Return)
    assert window.transcript.property("messageIds") == []
    commit = QInputMethodEvent("", [])
    commit.setCommitString("さ")
    edit.inputMethodEvent(commit)
    assert edit.toPlainText() == "one\ntwoさ"
    QTest.keyClick(edit, Qt.Key.Key_Return)
    until_idle(application, qtbot)
    assert sources(window)[0] == "one\ntwoさ"


def test_following_is_let_go_and_taken_up_by_the_reader_only(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script="A line of text.\n\n" * 300, tokens_per_second=3000))
    window = open_window(application, qtbot)
    window.resize(900, 500)
    ask(window, qtbot, "go")
    transcript, bar = window.transcript, window.transcript.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 600, timeout=10_000)
    assert transcript.property("following")
    assert bar.value() == bar.maximum()
    turn = QWheelEvent(
        QPointF(10, 10), QPointF(10, 10), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    transcript.wheelEvent(turn)
    assert not transcript.property("following")
    place, end = bar.value(), bar.maximum()
    qtbot.waitUntil(lambda: bar.maximum() > end + 200, timeout=10_000)
    assert bar.value() == place
    jump = child(window, "jumpToLatest")
    assert jump.isVisible()
    QTest.mouseClick(jump, Qt.MouseButton.LeftButton)
    assert transcript.property("following")
    assert bar.value() == bar.maximum()
    application.actions["message.stop"].trigger()
    until_idle(application, qtbot)


def test_resizing_while_it_writes(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(
        FakeEngine(script="Some **words** and\n\n```py\nx = 1\n```\n\n" * 60, tokens_per_second=2000)
    )
    window = open_window(application, qtbot)
    ask(window, qtbot, "go")
    for step in range(50):
        window.resize(600 + 17 * (step % 30), 450 + 11 * (step % 20))
        qtbot.wait(10)
    until_idle(application, qtbot)
    assert window.transcript.source().count("x = 1") == 60


def test_copy_gives_source_and_rich_text(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script=echo, tokens_per_second=5000))
    window = open_window(application, qtbot)
    ask(window, qtbot, "hi")
    until_idle(application, qtbot)
    answer = child(window, f"message-{window.transcript.property('leafId')}")
    QTest.mouseClick(child(answer, "copyButton"), Qt.MouseButton.LeftButton)
    mime = QGuiApplication.clipboard().mimeData()
    assert mime.text() == "You said **hi**."
    assert "<strong>hi</strong>" in mime.html()


def test_a_draft_is_there_after_a_restart(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine())
    window = open_window(application, qtbot)
    QTest.keyClicks(window.composer.edit, "not sent yet")
    until_idle(application, qtbot)
    application.close()
    again = make_application(FakeEngine())
    window = open_window(again, qtbot)
    window.chat_list.setCurrentIndex(window.chat_list.model().index(1, 0))
    assert window.composer.text() == "not sent yet"


def test_delete_stops_and_removes_a_chat(make_application: MakeApplication, qtbot: QtBot) -> None:
    engine = FakeEngine(script="word " * 5000, tokens_per_second=300)
    application = make_application(engine)
    window = open_window(application, qtbot)
    ask(window, qtbot, "go")
    qtbot.waitUntil(lambda: engine.stats().running == 1, timeout=5000)
    application.actions["chat.delete"].trigger()
    buttons = [button for button in window.findChildren(QPushButton) if button.text() == "Delete"]
    QTest.mouseClick(buttons[0], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: engine.stats().running == 0, timeout=5000)
    assert window.chat_list.model().rowCount() == 0
    assert child(window, "welcome").isVisible()


def test_a_failing_engine_is_a_sentence_with_a_button(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script="some words", fail_at=4, tokens_per_second=5000))
    window = open_window(application, qtbot)
    ask(window, qtbot, "go")
    qtbot.waitUntil(child(window, "notice").isVisible, timeout=5000)
    assert "token 4" in str(child(window, "notice").property("text"))
    assert window.transcript.source() == "some"
    until_idle(application, qtbot)


@pytest.mark.parametrize("content", [b"These are notes.\n", b"GGUF\x03\x00\x00\x00\x00"])
def test_a_model_that_cannot_be_opened_is_a_notice(
    make_application: MakeApplication, qtbot: QtBot, tmp_path: Path, content: bytes
) -> None:
    model = tmp_path / "notes.gguf"
    model.write_bytes(content)
    application = make_application(argv=(str(model),))
    window = open_window(application, qtbot)
    notice = child(window, "notice")
    qtbot.waitUntil(notice.isVisible, timeout=20_000)
    assert child(notice, "actionButton").isVisible()
    ask(window, qtbot, "anyone there?")
    until_idle(application, qtbot)
    answer = child(window, f"message-{window.transcript.property('leafId')}")
    assert answer.property("status") == "error"


def test_the_window_breathes_while_three_chats_write_three_thousand_tokens(
    make_application: MakeApplication, qtbot: QtBot
) -> None:
    application = make_application(FakeEngine(script="Some words, and *more*. " * 42, tokens_per_second=1000))
    window = open_window(application, qtbot)
    beats: list[float] = []
    heart = QTimer()
    heart.setInterval(5)
    heart.timeout.connect(lambda: beats.append(time.perf_counter()))
    for number in range(3):
        application.actions["chat.new"].trigger()
        ask(window, qtbot, f"chat {number}")
    heart.start()
    until_idle(application, qtbot)
    heart.stop()
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(beats))
    assert len(window.transcript.source()) == 42 * 24
    assert gaps[-1] < 0.25
    assert gaps[int(0.99 * len(gaps))] < 0.1


def test_two_hundred_messages_open_at_once_and_load_on_the_way_up(
    make_application: MakeApplication, qtbot: QtBot
) -> None:
    application = make_application(FakeEngine(script="An answer with `code` and **words**.", tokens_per_second=50_000))
    window = open_window(application, qtbot)
    for number in range(100):
        assert window.session is not None
        window.session.send(f"Question {number}")
        window.asked.emit()
        qtbot.waitUntil(lambda: window.session is not None and not window.session.is_active, timeout=10_000)
    chat_id = window.transcript.property("chatId")
    application.actions["chat.new"].trigger()
    started = time.perf_counter()
    window.chatWanted.emit(chat_id)
    qtbot.wait(1)
    assert time.perf_counter() - started < 0.3
    ids = window.transcript.property("messageIds")
    assert len(ids) == 200
    assert window.transcript.verticalScrollBar().value() == window.transcript.verticalScrollBar().maximum()
    window.transcript.showMessage(ids[0])
    assert str(child(window, f"message-{ids[0]}").property("source")) == "Question 0"


def test_themes_and_zoom_change_while_running(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script=echo, tokens_per_second=5000))
    window = open_window(application, qtbot)
    ask(window, qtbot, "hi")
    until_idle(application, qtbot)
    shades = []
    for name in ("view.dark", "view.light"):
        application.actions[name].trigger()
        qtbot.wait(20)
        shades.append(window.grab().toImage().pixelColor(window.width() // 2, window.height() // 2).lightness())
    assert shades[0] < 80 < 200 < shades[1]
    before = child(window, "composer").fontMetrics().height()
    application.actions["view.zoomIn"].trigger()
    assert child(window, "composer").fontMetrics().height() > before
    application.actions["view.zoomReset"].trigger()


def test_a_narrow_window_keeps_only_what_is_read(make_application: MakeApplication, qtbot: QtBot) -> None:
    window = open_window(make_application(FakeEngine()), qtbot)
    window.resize(1100, 700)
    assert child(window, "chatList").isVisible()
    window.resize(800, 700)
    qtbot.wait(10)
    assert not child(window, "chatList").isVisible()
    assert child(window, "composer").isVisible()


def test_a_pasted_book_does_not_hold_the_window_up(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script="Long.", tokens_per_second=5000))
    window = open_window(application, qtbot)
    book = "A line of the book.\n" * 50_000
    window.composer.set_text(book)
    started = time.perf_counter()
    window.composer.submit()
    assert time.perf_counter() - started < 0.5
    until_idle(application, qtbot)
    question = child(window, f"message-{window.transcript.property('messageIds')[0]}")
    assert question.property("source") == book.strip("\n")
    rest = child(question, "restButton")
    assert rest.isVisible()
    assert "characters" in rest.property("text")


def test_the_status_line_leaves_out_what_does_not_fit(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine(script="word " * 5000, tokens_per_second=200))
    window = open_window(application, qtbot)
    ask(window, qtbot, "go")
    for width, is_whole in ((1200, True), (480, False)):
        window.resize(width, 600)
        qtbot.wait(400)
        shown = [label for label in window.status_line.findChildren(QLabel) if label.isVisible() and label.text()]
        assert all(label.width() >= label.sizeHint().width() for label in shown)
        assert (len(shown) == 4) == is_whole
    application.actions["message.stop"].trigger()
    until_idle(application, qtbot)


def test_zoom_widens_what_holds_text(make_application: MakeApplication, qtbot: QtBot) -> None:
    application = make_application(FakeEngine())
    window = open_window(application, qtbot)
    window.resize(1600, 900)
    sidebar = child(window, "sidebar")
    before = sidebar.width()
    for _ in range(3):
        application.actions["view.zoomIn"].trigger()
    qtbot.wait(10)
    assert sidebar.width() == round(before * 1.5)
    application.actions["view.zoomReset"].trigger()

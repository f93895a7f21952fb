"""The store's one writing thread: owns the connection, runs one transaction after another, saves answers as they grow.

Knows no rows of its own, only that of two states of one answer the later one counts.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from octavo.chat.message import Message, Status
from octavo.store import rows
from octavo.store.errors import StoreError, store_error

_log = logging.getLogger(__name__)
# Text that a crash may cost: this long, and a transaction.
_ANSWER_SECONDS = 0.5
# How long to leave a disk alone that had no room.
_AGAIN_SECONDS = 1.0

Change = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, slots=True)
class _Job:
    change: Change
    done: Future[None]
    truncates: bool


class Writer:
    """Takes changes from any thread and commits them in order."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """Take over a connection (opened with `check_same_thread=False`) and start the thread."""
        self._connection = connection
        self._path = path
        self._jobs: deque[_Job] = deque()
        self._answers: dict[str, Message] = {}
        self._due: float | None = None
        self._is_busy = False
        self._is_closing = False
        self._problem: StoreError | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="octavo-store", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> StoreError | None:
        """Why the last transaction failed; None after one that did not."""
        return self._problem

    def put(self, change: Change, *, truncates: bool = False) -> Future[None]:
        """Queue a transaction; its future is done once it is committed, or fails with a StoreError.

        With `truncates` the write-ahead log is emptied after it, so that what was deleted is in no file any more.
        """
        done: Future[None] = Future()
        with self._changed:
            assert not self._is_closing, "the store is closed"
            self._jobs.append(_Job(change, done, truncates))
            self._changed.notify_all()
        return done

    def put_answer(self, answer: Message) -> None:
        """Save how far an answer has come: a streaming one within half a second, an ended one at once."""
        with self._changed:
            assert not self._is_closing, "the store is closed"
            self._answers[answer.id] = answer
            now = time.monotonic()
            due = now + _ANSWER_SECONDS if answer.status is Status.STREAMING else now
            # A disk that had no room is left alone until its time has come.
            if self._due is None or (due < self._due and self._problem is None):
                self._due = due
                self._changed.notify_all()

    def is_idle(self) -> bool:
        """True when everything that was put is committed or has failed for good."""
        with self._changed:
            return not (self._jobs or self._answers or self._is_busy)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until idle; answers do not wait for their half second. False after `timeout` seconds or without room."""
        with self._changed:
            if self._answers:
                self._due = time.monotonic()
                self._changed.notify_all()
            self._changed.wait_for(
                lambda: not (self._jobs or self._is_busy) and (not self._answers or self._problem is not None), timeout
            )
            return not (self._jobs or self._answers or self._is_busy)

    def close(self) -> None:
        """Commit what is queued, end the thread and close the connection. Idempotent."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                while not self._jobs and not self._is_closing and not self._is_due():
                    self._changed.wait(None if self._due is None else max(0.0, self._due - time.monotonic()))
                job = self._jobs.popleft() if self._jobs else None
                # Jobs first: an answer can be saved only once the turn that it belongs to was.
                answers = self._answers if job is None else {}
                if answers:
                    self._answers, self._due = {}, None
                elif job is None and self._is_closing:
                    break
                self._is_busy = True
            if answers and not self._save(answers) and self._is_closing:
                _log.error("%d answers could not be kept: %s", len(answers), self._problem)
                break
            if job is not None:
                self._do(job)
        self._connection.close()
        with self._changed:
            self._is_busy = False
            self._answers.clear()
            self._changed.notify_all()

    def _is_due(self) -> bool:
        return self._due is not None and self._due <= time.monotonic()

    def _save(self, answers: dict[str, Message]) -> bool:
        """Commit answers; without success they wait for another try, unless newer states came meanwhile."""
        self._problem = self._commit(lambda connection: rows.save_answers(connection, answers.values()))
        if self._problem is None:
            return True
        with self._changed:
            self._answers = answers | self._answers
            self._due = time.monotonic() + _AGAIN_SECONDS
        return False

    def _do(self, job: _Job) -> None:
        problem = self._commit(job.change)
        if problem is not None:
            self._problem = problem
            job.done.set_exception(problem)
            return
        if not self._answers:
            self._problem = None
        if job.truncates:
            self._truncate()
        job.done.set_result(None)

    def _truncate(self) -> None:
        """Empty the write-ahead log; where a reader is in the way the end of the program does it."""
        try:
            is_blocked, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.Error as fault:
            _log.warning("the write-ahead log was not emptied: %s", fault)
        else:
            if is_blocked:
                _log.info("the write-ahead log was not emptied: it is being read")

    def _commit(self, change: Change) -> StoreError | None:
        """Run one transaction, all or nothing; what stopped it, if something did."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            change(self._connection)
            self._connection.execute("COMMIT")
        except sqlite3.Error as fault:
            _log.warning("a transaction failed: %s", fault)
            self._roll_back()
            return store_error(fault, self._path)
        except Exception as fault:  # noqa: BLE001 - a fault of ours in one change must not end the keeping of the others
            _log.exception("a change of the chats is faulty")
            self._roll_back()
            return StoreError(f"This change could not be kept because of a fault in Octavo ({fault!r}).")
        return None

    def _roll_back(self) -> None:
        # After a full disk SQLite has rolled back by itself.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

"""The application's hold on the engine: loads a model in a thread of its own, and takes questions also before that.

Knows no store and no window. Every method may be called from any thread; all but `close` return at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

from octavo.chat.answer import Turn
from octavo.engine_client.preload import preload_torch
from octavo.engine_client.status import EngineStatus, Phase
from octavo.engine_client.submission import Submission
from octavo_engine import (
    Engine,
    EngineClosed,
    EngineConfig,
    EngineError,
    EngineStats,
    GenerationRequest,
    LoadCancelled,
    LoadProgress,
    Message,
    ModelLoadError,
    Priority,
    SequenceInfo,
    forget_stored,
    model_name,
)

_log = logging.getLogger(__name__)
_CLOSED = "Octavo is closing; ask again after the next start."


class EngineClient:
    """One engine at a time, with the answers that wait for it."""

    def __init__(
        self, engine: Engine | None = None, *, model_path: Path | None = None, config: EngineConfig = EngineConfig()
    ) -> None:
        """Take `engine` over, which is ready, or `load` the model at `model_path` later."""
        self._engine = engine
        self._model_path = model_path
        self._config = config
        self._waiting: list[Submission] = []
        self._loader: threading.Thread | None = None
        self._forgetting: list[threading.Thread] = []
        self._wanted: Path | None = None
        self._is_closed = False
        self._changed = threading.RLock()
        if engine is not None:
            self._status = EngineStatus(Phase.READY, "Ready", model_name=engine.info.name)
        else:
            self._status = EngineStatus(Phase.IDLE, "No model is loaded", model_name=_name_of(model_path))

    @property
    def status(self) -> EngineStatus:
        """Where the engine stands; a new object whenever that changes."""
        return self._status

    @property
    def model_name(self) -> str | None:
        """The model that answers or is about to; None where there is none."""
        return self._status.model_name

    @property
    def model_path(self) -> Path | None:
        """The file of the model that answers or is about to."""
        return self._model_path

    def load(self, model_path: Path | None = None) -> None:
        """Load a model (by default the one given first) in place of the one that is there; `status` tells how it goes.

        Answers of the model before it end with an error; answers that wait go to the new one.
        """
        with self._changed:
            if self._is_closed:
                return
            self._model_path = model_path or self._model_path
            name = _name_of(self._model_path)
            if self._model_path is None:
                self._fail(ModelLoadError("There is no model yet. Choose a model to talk to, a file or a folder."))
                return
            self._status = EngineStatus(Phase.LOADING, f"Loading {name}", model_name=name)
            self._wanted = self._model_path
            if self._loader is None:
                self._loader = threading.Thread(target=self._load_wanted, name="octavo-load", daemon=True)
                self._loader.start()

    def ask(self, turns: Sequence[Turn], *, owner: str) -> Submission:
        """Begin an answer, or have it wait for the model; what goes wrong arrives in the submission."""
        request = GenerationRequest(
            messages=[Message(turn.role, turn.text, token_ids=turn.token_ids or None) for turn in turns],
            priority=Priority.INTERACTIVE,
            owner=owner,
        )
        submission = Submission(request, lambda: self._status)
        with self._changed:
            if self._status.error is not None:
                submission.fail(self._status.error)
            elif self._engine is not None and self._status.phase is Phase.READY:
                submission.start(self._engine)
            else:
                self._waiting.append(submission)
        return submission

    def forget(self, owner: str) -> None:
        """Remove what memory and disk keep of the answers of `owner`, a chat, unless others need it too."""

        def run() -> None:
            engine, folder = self._engine, self._config.page_store
            if engine is not None:
                engine.forget(owner)
            elif folder is not None:
                forget_stored(folder, owner)

        # Hundreds of files may have to go.
        thread = threading.Thread(target=run, name="octavo-forget", daemon=True)
        self._forgetting = [*(each for each in self._forgetting if each.is_alive()), thread]
        thread.start()

    def stats(self) -> EngineStats | None:
        """Counters of the engine; None while there is none."""
        engine = self._engine
        return engine.stats() if engine is not None else None

    def sequences(self) -> tuple[SequenceInfo, ...]:
        """What the engine is computing."""
        engine = self._engine
        return engine.sequences() if engine is not None else ()

    def count_tokens(self, text: str) -> int | None:
        """Tokens of a text; None while there is no model to count with."""
        engine = self._engine
        return engine.tokenizer.count(text) if engine is not None else None

    @property
    def context_length(self) -> int | None:
        """Tokens that the model takes, question and answer together; None while there is none."""
        engine = self._engine
        return engine.info.context_length if engine is not None else None

    def is_loading(self) -> bool:
        """True while a model is being loaded or unloaded."""
        return self._loader is not None

    def close(self, timeout: float | None = None) -> bool:
        """Cancel a load, end all answers, give threads and memory back; False if that took longer than `timeout`."""
        with self._changed:
            self._is_closed = True
            self._wanted = None
            self._fail(EngineClosed(_CLOSED))
            engine, self._engine = self._engine, None
            threads = [*self._forgetting, *([self._loader] if self._loader is not None else [])]
        if engine is not None:
            engine.close()
        for thread in threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)

    def _load_wanted(self) -> None:
        """Load what is wanted, and once more when that was changed meanwhile; the loader's thread."""
        while True:
            with self._changed:
                path, self._wanted = self._wanted, None
                if path is None:
                    self._loader = None
                    return
                before, self._engine = self._engine, None
            if before is not None:
                before.close()
            try:
                preload_torch()
                engine = Engine.open(path, self._config, self._on_progress)
            except LoadCancelled:
                continue
            except EngineError as error:
                _log.warning("%s was not loaded: %s", path, error)
                self._on_failure(error)
            except Exception as fault:  # noqa: BLE001 - whatever it was, those who wait must hear of it
                _log.exception("%s was not loaded", path)
                self._on_failure(
                    ModelLoadError(f"{path.name} could not be loaded because of a fault in Octavo ({fault!r}).")
                )
            else:
                self._on_loaded(engine)

    def _on_progress(self, progress: LoadProgress) -> bool:
        with self._changed:
            if self._is_closed or self._wanted is not None:
                return False
            self._status = self._status.with_progress(progress)
            return True

    def _on_loaded(self, engine: Engine) -> None:
        with self._changed:
            is_wanted = not self._is_closed and self._wanted is None
            if is_wanted:
                self._engine = engine
                self._status = EngineStatus(Phase.READY, _ready(engine), model_name=engine.info.name)
                waiting, self._waiting = self._waiting, []
                for submission in waiting:
                    submission.start(engine)
        if not is_wanted:
            engine.close()

    def _on_failure(self, error: EngineError) -> None:
        with self._changed:
            if not self._is_closed and self._wanted is None:
                self._fail(error)

    def _fail(self, error: EngineError) -> None:
        """Say that no engine will answer, to those who wait and to those who come."""
        self._status = EngineStatus(Phase.FAILED, error.message, model_name=_name_of(self._model_path), error=error)
        waiting, self._waiting = self._waiting, []
        for submission in waiting:
            submission.fail(error)


def _ready(engine: Engine) -> str:
    if engine.info.runs_on == "transformers":
        return "Ready. Models of this kind are computed by transformers, slower than others."
    return "Ready"


def _name_of(path: Path | None) -> str | None:
    """What to call a model before it was looked at."""
    return model_name(path) if path is not None else None

"""After a restart a chat's history is read from disk: the same answer, not computed again. The starter model."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from octavo_engine import Completion, Delta, Engine, EngineConfig, GenerationRequest, SamplingParams

HISTORY = "The history of paper and of books is long. " * 12
Open = Callable[..., Engine]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.fixture
def open_engine(starter_model: Path, folder: Path) -> Iterator[Open]:
    opened: list[Engine] = []

    def open_one(model: Path = starter_model, **settings: object) -> Engine:
        values = {"page_store": folder, "batch_invariant": True, "kv_pages": 64} | settings
        engine = Engine.open(model, EngineConfig(**values))  # type: ignore[arg-type]
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


def answer(engine: Engine, prompt: str = HISTORY, *, owner: str = "chat/1", keep_on_disk: bool = True) -> Completion:
    sampling = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
    request = GenerationRequest(prompt=prompt, sampling=sampling, owner=owner, keep_on_disk=keep_on_disk)
    return engine.submit(request).result(60)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.page"), key=lambda path: path.stat().st_mtime_ns)


def test_a_history_is_not_computed_again_after_a_restart(open_engine: Open, folder: Path) -> None:
    engine = open_engine()
    cold = answer(engine)
    engine.close()
    engine = open_engine()
    warm = answer(engine)
    assert warm.token_ids == cold.token_ids
    assert cold.usage.cached_tokens == 0
    prompt = cold.usage.prompt_tokens
    assert prompt - 16 <= warm.usage.cached_tokens <= prompt - 1
    assert engine.stats().steps == len(warm.token_ids)
    assert engine.stats().disk_pages == len(files(folder)) == (prompt + 7) // 16
    assert engine.check_integrity().ok
    # What was read is in the prefix tree now: another branch needs no disk.
    shutil.rmtree(folder)
    assert answer(engine, HISTORY + "And now").usage.cached_tokens >= prompt - 16


def test_damaged_pages_are_computed_again(open_engine: Open, folder: Path) -> None:
    engine = open_engine()
    cold = answer(engine)
    engine.close()
    # The beginning has been used last.
    third = files(folder)[-3]
    third.write_bytes(third.read_bytes()[:-1] + b"\0")
    engine = open_engine()
    warm = answer(engine)
    assert warm.usage.cached_tokens == 2 * 16
    assert warm.token_ids == cold.token_ids
    engine.close()
    # It was written anew, sound.
    engine = open_engine()
    assert answer(engine).usage.cached_tokens >= cold.usage.prompt_tokens - 16


@pytest.mark.parametrize("change", [{"batch_invariant": False}, {"weights": "float32"}, {"max_context": 512}])
def test_pages_of_another_arithmetic_are_not_used(open_engine: Open, change: dict[str, object]) -> None:
    engine = open_engine()
    answer(engine)
    engine.close()
    assert answer(open_engine(**change)).usage.cached_tokens == 0


def test_pages_of_another_model_are_not_used(open_engine: Open, starter_model: Path, tmp_path: Path) -> None:
    engine = open_engine()
    answer(engine)
    engine.close()
    other = tmp_path / "other.gguf"
    content = bytearray(starter_model.read_bytes())
    content[-1000] ^= 1
    other.write_bytes(content)
    engine = open_engine(other)
    assert answer(engine).usage.cached_tokens == 0
    engine.close()
    # The same file under another name is the same model.
    copy = tmp_path / "copy.gguf"
    shutil.copyfile(starter_model, copy)
    engine = open_engine(copy)
    answer(engine, "Wait for the digest.")
    engine.close()
    assert answer(open_engine(copy)).usage.cached_tokens > 0


def test_temporary_chats_leave_nothing_on_disk(open_engine: Open, folder: Path) -> None:
    engine = open_engine()
    answer(engine, keep_on_disk=False)
    child = engine.submit(
        GenerationRequest(prompt=HISTORY, sampling=SamplingParams(max_tokens=20, ignore_eos=True), keep_on_disk=False)
    )
    child.result(60)
    child.fork()[0].result(60)
    engine.close()
    assert files(folder) == []


def test_forget_removes_the_pages_that_nobody_else_needs(open_engine: Open, folder: Path) -> None:
    engine = open_engine()
    answer(engine, HISTORY + "One", owner="chat/1")
    answer(engine, HISTORY + "Two, which is another branch of it all, and longer.", owner="chat/2")
    answer(engine, HISTORY + "Three", owner="other/1")
    engine.close()
    engine = open_engine()
    before = len(files(folder))
    assert engine.forget("chat") > 0
    assert 0 < len(files(folder)) < before
    assert answer(engine, HISTORY + "Three", owner="other/1").usage.cached_tokens > 0
    assert engine.forget("other") > 0
    assert engine.stats().disk_pages == len(files(folder)) == 0


def test_an_answer_that_ends_after_it_was_forgotten_stays_forgotten(open_engine: Open, folder: Path) -> None:
    engine = open_engine()
    sampling = SamplingParams(max_tokens=60, ignore_eos=True)
    handle = engine.submit(GenerationRequest(prompt=HISTORY, sampling=sampling, owner="chat/1"))
    next(event for event in handle.events(30) if isinstance(event, Delta))
    engine.forget("chat")
    handle.cancel()
    handle.result(30)
    engine.close()
    assert files(folder) == []


def test_the_limit_holds(open_engine: Open, folder: Path) -> None:
    engine = open_engine(page_store_bytes=2 << 20)
    answer(engine)
    engine.close()
    kept = files(folder)
    assert 0 < len(kept) < 7
    assert sum(path.stat().st_size for path in kept) <= 2 << 20
    engine = open_engine(page_store_bytes=2 << 20)
    # What is left is the beginning.
    assert answer(engine).usage.cached_tokens == 16 * len(kept)

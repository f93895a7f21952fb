"""Pages on disk come back byte for byte or not at all, in a folder that stays small and private."""

import queue
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octavo_engine.page_store.fingerprint import ModelDigests
from octavo_engine.page_store.page_file import SUFFIX, PageName, file_name
from octavo_engine.page_store.page_key import page_keys, root_key
from octavo_engine.page_store.page_store import PageStore
from small_disk import mounted, needs_mount

PAGE = 4
BYTES = 1000
ROOT = root_key({"model": "m"})
Open = Callable[..., PageStore]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.fixture
def open_store(folder: Path) -> Iterator[Open]:
    opened: list[PageStore] = []

    def open_one(limit: int = 1 << 20, root: bytes = ROOT, folder: Path = folder) -> PageStore:
        store = PageStore(folder, payload_bytes=BYTES, limit=limit)
        store.root = root
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


def names(tokens: list[int], root: bytes = ROOT) -> list[PageName]:
    return [
        PageName(key, tuple(tokens[start : start + PAGE]))
        for key, start in zip(page_keys(root, tokens, PAGE), range(0, len(tokens), PAGE), strict=False)
    ]


def payload(name: PageName) -> bytes:
    return (name.key * (BYTES // 32 + 1))[:BYTES]


def keep(store: PageStore, tokens: list[int], owner: str = "o") -> list[PageName]:
    kept = names(tokens)
    for name in kept:
        if not store.has(name.key):
            store.put(name, payload(name), owner)
    store.use([name.key for name in kept], owner)
    assert store.flush(5)
    return kept


def fetch(store: PageStore, wanted: list[PageName]) -> list[bytearray]:
    got: queue.SimpleQueue[list[bytearray]] = queue.SimpleQueue()
    store.fetch(wanted, got.put)
    return got.get(timeout=5)


def _wait(gate: threading.Event) -> None:
    gate.wait(5)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.suffix == SUFFIX}


def test_pages_come_back_after_the_folder_is_opened_again(open_store: Open) -> None:
    store = open_store()
    kept = keep(store, list(range(11)))
    assert len(kept) == 2
    assert store.pages == 2
    store.close()
    again = open_store()
    assert again.known([name.key for name in names(list(range(12)))]) == 2
    assert [bytes(page) for page in fetch(again, kept)] == [payload(name) for name in kept]


def test_keys_depend_on_everything_before_and_on_every_fact() -> None:
    base = page_keys(ROOT, [1, 2, 3, 4, 5, 6, 7, 8], PAGE)
    assert page_keys(ROOT, [1, 2, 3, 4, 5, 6, 7, 9], PAGE)[0] == base[0]
    assert page_keys(ROOT, [0, 2, 3, 4, 5, 6, 7, 8], PAGE)[1] != base[1]
    for facts in ({"model": "n"}, {"model": "m", "adapter": "a"}, {}):
        assert not set(page_keys(root_key(facts), [1, 2, 3, 4, 5, 6, 7, 8], PAGE)) & set(base)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), kind=st.sampled_from(["changed", "cut", "longer", "another"]))
def test_a_damaged_foreign_or_shortened_file_is_removed_and_never_used(
    tmp_path_factory: pytest.TempPathFactory, open_store: Open, data: st.DataObject, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("pages")
    store = open_store(folder=folder)
    kept = keep(store, list(range(12)))
    path = folder / file_name(kept[1].key)
    content = bytearray(path.read_bytes())
    if kind == "changed":
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    elif kind == "longer":
        content += b"x"
    else:
        content = bytearray((folder / file_name(kept[2].key)).read_bytes())
    path.write_bytes(content)
    assert [bytes(page) for page in fetch(store, kept)] == [payload(kept[0])]
    assert not path.exists()
    again = open_store(folder=folder)
    assert again.known([name.key for name in kept]) == 1


def test_what_has_no_owner_and_what_was_not_finished_is_removed(open_store: Open, folder: Path) -> None:
    store = open_store()
    keep(store, list(range(8)), "a")
    keep(store, list(range(100, 108)), "b")
    store.close()
    (folder / "half.part").write_bytes(b"x")
    (folder / f"foreign{SUFFIX}").write_bytes(b"x")
    for path in folder.glob("*.owner"):
        if b'"b"' in path.read_bytes():
            path.write_bytes(b"garbage")
    again = open_store()
    assert again.pages == 2
    assert len(files(folder)) == 2
    assert not list(folder.glob("*.part"))


def test_a_list_of_owners_that_was_cut_short_loses_only_its_end(open_store: Open, folder: Path) -> None:
    store = open_store()
    kept = keep(store, list(range(12)))
    store.close()
    (path,) = folder.glob("*.owner")
    path.write_bytes(path.read_bytes()[:-5])
    again = open_store()
    assert again.pages == 2
    keep(again, list(range(12)))
    again.close()
    assert open_store().known([name.key for name in kept]) == 3


def test_the_least_recently_used_end_goes_first(open_store: Open, folder: Path) -> None:
    store = open_store()
    old = keep(store, list(range(16)))
    size = (folder / file_name(old[0].key)).stat().st_size
    store.limit = 6 * size
    recent = keep(store, list(range(100, 116)))
    assert store.file_bytes <= 6 * size
    # Of the older beginning the end has gone, of the newer one nothing.
    assert store.known([name.key for name in old]) == 2
    assert store.known([name.key for name in recent]) == 4
    fetch(store, old[:2])
    again = open_store(limit=3 * size)
    assert again.known([name.key for name in old]) == 2
    assert again.known([name.key for name in recent]) == 1


def test_files_are_private(open_store: Open, folder: Path) -> None:
    keep(open_store(), list(range(8)))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {0o600}


def test_forgetting_spares_what_others_need(open_store: Open, folder: Path) -> None:
    store = open_store()
    common = list(range(8))
    keep(store, [*common, 50, 51, 52, 53], "chat/one")
    keep(store, [*common, 60, 61, 62, 63], "other/leaf")
    keep(store, [*common, 70, 71, 72, 73], "chat/two")
    assert store.pages == 5
    assert store.forget("chat") == 2
    assert store.forget("oth") == 0
    assert len(files(folder)) == 3
    assert all(b"chat" not in path.read_bytes() for path in folder.glob("*.owner"))
    store.close()
    assert open_store().known([name.key for name in names([*common, 60, 61, 62, 63])]) == 3


def test_what_is_forgotten_before_it_is_written_is_not_written(open_store: Open, folder: Path) -> None:
    store = open_store()
    gate = threading.Event()
    store.run(lambda: _wait(gate))
    for name in names(list(range(8))):
        store.put(name, payload(name), "o")
    assert store.forget("o") == 2
    gate.set()
    assert store.flush(5)
    assert files(folder) == set()


@needs_mount
def test_a_full_disk_costs_pages_and_nothing_else(open_store: Open, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        store = open_store(folder=disk / "pages", limit=1 << 30)
        for start in range(0, 4000, 400):
            for name in names(list(range(start, start + 400))):
                store.put(name, payload(name), "o")
        assert store.flush(5)
        assert store.problem is not None
        assert "No space left" in store.problem
        assert not store.has_room
        assert 0 < store.pages < 60
        first = names(list(range(400)))[0]
        assert [bytes(page) for page in fetch(store, [first])] == [payload(first)]
        assert not list((disk / "pages").glob("*.part"))


@needs_mount
def test_a_read_only_folder_is_a_problem_and_no_error(open_store: Open, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "ro") as disk:
        store = open_store(folder=disk / "pages")
        assert store.problem is not None
        assert "Read-only" in store.problem
        store.put(names([1, 2, 3, 4])[0], bytes(BYTES), "o")
        assert store.pages == 0
        store.close()


@needs_mount
def test_forgetting_on_a_disk_that_became_read_only_is_a_problem_and_no_error(open_store: Open, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=8m") as disk:
        store = open_store(folder=disk / "pages")
        keep(store, list(range(8)))
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert store.forget("o") == 2
        assert store.problem is not None
        assert store.known([name.key for name in names(list(range(8)))]) == 0
        store.close()


def test_closing_does_not_wait_for_a_long_digest(open_store: Open, tmp_path: Path) -> None:
    model = tmp_path / "large.gguf"
    with model.open("wb") as file:
        file.truncate(64 << 30)
    store = open_store()
    digests: list[str | None] = []
    has_begun = threading.Event()

    def is_unwanted() -> bool:
        has_begun.set()
        return store.is_closing

    store.run(lambda: digests.append(ModelDigests(tmp_path).compute(model, is_unwanted)))
    assert has_begun.wait(5)
    begun = time.monotonic()
    store.close()
    assert time.monotonic() - begun < 2
    assert digests == [None]
    assert ModelDigests(tmp_path).known(model) is None


def test_the_threads_end(open_store: Open) -> None:
    store = open_store()
    store.close()
    store.close()
    got: list[object] = []
    store.fetch(names([1, 2, 3, 4]), got.append)
    assert got == [[]]
    assert not [thread for thread in threading.enumerate() if thread.name == "octavo-pages"]

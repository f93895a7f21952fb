"""A chat in use: takes a question, keeps it, has it answered, and tells its listeners what changes.

Lives on one thread, the one that calls `drain`. Knows no Qt; database and engine only as `ChatStore` and `Answerer`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime

from octavo.chat.advice import Advice
from octavo.chat.answer import Answer, Answerer, AnswerEvent, Began, Broken, Ended, Held, Holdup, Text, Turn
from octavo.chat.change import Change, ChatError, ChatState, MessageAdded, MessageChanged, StateChanged
from octavo.chat.chat import Chat, title_from
from octavo.chat.chat_store import ChatStore, KeepError
from octavo.chat.identifier import new_id
from octavo.chat.listeners import Listeners
from octavo.chat.message import Message, Role, Status
from octavo.chat.tree import MessageTree

_STATE_OF = {
    Holdup.LOADING: ChatState.LOADING,
    Holdup.QUEUED: ChatState.QUEUED,
    Holdup.READING: ChatState.STREAMING,
    Holdup.MEMORY: ChatState.WAITING,
}


class ChatSession:
    """One chat with its messages and, at most, one answer on its way."""

    def __init__(self, chat: Chat, *, store: ChatStore, answerer: Answerer, is_kept: bool) -> None:
        """Open `chat`; `is_kept` says whether the store has it. Raises KeepError where its messages cannot be read."""
        self._chat = chat
        self._store = store
        self._answerer = answerer
        self._tree = MessageTree(store.messages(chat.id) if is_kept else ())
        self._is_kept = is_kept
        self._leaf_id = chat.leaf_id if chat.leaf_id in self._tree else self._tree.newest_leaf()
        self._state = ChatState.IDLE
        self._note = ""
        self._error: ChatError | None = None
        # Messages that the store does not have (yet): a question that could not be kept goes with the next one.
        self._unkept: dict[str, Message] = {}
        self._keeping: Future[None] | None = None
        self._answer: Answer | None = None
        self._answer_id: str | None = None
        self._listeners: Listeners[Change] = Listeners()

    @property
    def chat(self) -> Chat:
        """The chat's row."""
        return self._chat

    @property
    def state(self) -> ChatState:
        """What the chat is doing."""
        return self._state

    @property
    def note(self) -> str:
        """What an answer without text is at, such as "Loading SmolLM2 135M, 40 %"; "" when there is nothing to say."""
        return self._note

    @property
    def error(self) -> ChatError | None:
        """What the last question failed with, until the next one."""
        return self._error

    @property
    def path(self) -> tuple[Message, ...]:
        """The messages that are shown, from the first to the last."""
        return self._tree.path(self._leaf_id)

    @property
    def is_active(self) -> bool:
        """True while an answer is on its way: `drain` has to be called."""
        return self._state.is_active

    @property
    def is_kept(self) -> bool:
        """True once the store was given the chat: it belongs in the list."""
        return self._is_kept

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener` with every change, until the function that comes back is called."""
        return self._listeners.subscribe(listener)

    def draft(self) -> str:
        """What was typed into this chat and not sent."""
        return self._store.draft(self._chat.id) if self._is_kept else ""

    def save_draft(self, text: str) -> None:
        """Keep what is typed; with a first draft the chat itself is kept from then on."""
        if not text and not self._is_kept:
            return
        is_first, self._is_kept = not self._is_kept, True
        self._store.save_draft(self._chat, text)
        if is_first:
            self._listeners.tell(StateChanged(self._state))

    def send(self, text: str) -> None:
        """Ask `text`: both messages are final at once, kept next, and given to the model once they are kept.

        The caller makes sure that no answer is on its way and that `text` has more than spaces in it.
        """
        assert not self.is_active, "an answer is on its way"
        assert text.strip(), "nothing to send"
        now = datetime.now(UTC)
        question = Message(
            id=new_id(),
            chat_id=self._chat.id,
            parent_id=self._leaf_id,
            role=Role.USER,
            status=Status.COMPLETE,
            text=text,
            created=now,
        )
        answer = Message(
            id=new_id(),
            chat_id=self._chat.id,
            parent_id=question.id,
            role=Role.ASSISTANT,
            status=Status.STREAMING,
            text="",
            created=now,
            model=self._answerer.model_name,
        )
        is_first = len(self._tree) == 0
        self._chat = dataclasses.replace(
            self._chat,
            title=title_from(text) if is_first else self._chat.title,
            updated=now,
            leaf_id=answer.id,
        )
        self._leaf_id = answer.id
        for message in (question, answer):
            self._tree.put(message)
            self._unkept[message.id] = message
            self._listeners.tell(MessageAdded(message))
        self._keep(answer)

    def retry(self) -> None:
        """Ask the last question once more, after it failed: the answer's place is used again."""
        assert not self.is_active, "an answer is on its way"
        answer = self._tree[self._leaf_id or ""]
        assert answer.role is Role.ASSISTANT, "the last message is no answer"
        empty = dataclasses.replace(
            answer,
            status=Status.STREAMING,
            text="",
            token_ids=(),
            error=None,
            finish_reason=None,
            model=self._answerer.model_name,
        )
        self._unkept[empty.id] = empty
        self._put(empty)
        self._keep(empty)

    def stop(self) -> None:
        """End the answer on its way; its text so far stays. Without one nothing happens."""
        if self._answer is not None:
            self._answer.cancel()
        elif self._keeping is not None:
            # Not given to a model yet: nobody else would say that it ended.
            self._finish(Status.STOPPED, finish_reason="cancelled")

    def abandon(self) -> None:
        """End the answer on its way here and now, as at the end of the program: its text so far is kept as stopped."""
        answer = self._answer
        if self.is_active:
            self.drain()
        if self.is_active:
            self._finish(Status.STOPPED, finish_reason="cancelled")
        if answer is not None:
            answer.cancel()
        if self._unkept:
            self._store.save_turn(self._chat, tuple(self._unkept.values()))

    def rename(self, title: str) -> None:
        """Give the chat another title."""
        self._chat = dataclasses.replace(self._chat, title=title)
        if self._is_kept:
            self._store.save_chat(self._chat)

    def drain(self) -> None:
        """Take in what store and engine have to say since the last call; never waits."""
        if self._keeping is not None and self._keeping.done():
            self._submit(self._keeping)
        if self._answer is not None:
            for event in self._answer.drain():
                self._apply(event)

    def _keep(self, answer: Message) -> None:
        self._error = None
        self._answer_id = answer.id
        self._is_kept = True
        self._keeping = self._store.save_turn(self._chat, tuple(self._unkept.values()))
        self._set_state(ChatState.QUEUED)

    def _submit(self, keeping: Future[None]) -> None:
        """Give the kept question to the model; one that could not be kept is not asked."""
        self._keeping = None
        fault = keeping.exception()
        if isinstance(fault, KeepError):
            self._fail(ChatError(fault.message, Advice.RETRY))
            return
        if fault is not None:
            raise fault
        self._unkept.clear()
        assert self._answer_id is not None
        self._answer = self._answerer.ask(self._turns(self._answer_id), owner=f"{self._chat.id}/{self._answer_id}")

    def _turns(self, answer_id: str) -> list[Turn]:
        """What the model is given: the system prompt, then the path to the question and nothing beside it."""
        turns = [Turn(Role.SYSTEM, self._chat.system)] if self._chat.system else []
        before = self._tree.path(self._tree[answer_id].parent_id)
        return turns + [Turn(message.role, message.text, message.token_ids) for message in before if message.text]

    def _apply(self, event: AnswerEvent) -> None:
        match event:
            case Held(holdup, note):
                self._set_state(_STATE_OF[holdup], note)
            case Began(model, prompt_tokens, cached_tokens):
                answer = dataclasses.replace(
                    self._open(), model=model, prompt_tokens=prompt_tokens, cached_tokens=cached_tokens
                )
                self._put(answer)
                self._set_state(ChatState.STREAMING)
            case Text(text, token_ids):
                before = self._open()
                answer = dataclasses.replace(before, text=before.text + text, token_ids=before.token_ids + token_ids)
                self._put(answer, appended=text)
                self._store.save_answer(answer)
                self._set_state(ChatState.STREAMING)
            case Ended():
                status = Status.STOPPED if event.reason == "cancelled" else Status.COMPLETE
                self._finish(
                    status,
                    finish_reason=event.reason,
                    prompt_tokens=event.prompt_tokens,
                    cached_tokens=event.cached_tokens,
                    completion_tokens=event.completion_tokens,
                    ttft=event.ttft,
                    seconds=event.seconds,
                )
            case Broken(error, advice):
                self._fail(ChatError(error, advice))

    def _open(self) -> Message:
        """The answer on its way."""
        assert self._answer_id is not None
        return self._tree[self._answer_id]

    def _put(self, message: Message, *, appended: str | None = None) -> None:
        self._tree.put(message)
        if message.id in self._unkept:
            self._unkept[message.id] = message
        self._listeners.tell(MessageChanged(message, appended))

    def _finish(self, status: Status, **values: str | float | None) -> None:
        """End the answer on its way and keep it as it stands."""
        # mypy cannot see that the names in `values` fit their types.
        answer = dataclasses.replace(self._open(), status=status, **values)  # type: ignore[arg-type]
        self._answer = self._answer_id = self._keeping = None
        self._put(answer)
        self._store.save_answer(answer)
        self._set_state(ChatState.ERROR if self._error else ChatState.IDLE)

    def _fail(self, error: ChatError) -> None:
        self._error = error
        self._finish(Status.ERROR, error=error.text)

    def _set_state(self, state: ChatState, note: str = "") -> None:
        if (state, note) != (self._state, self._note) or state is ChatState.ERROR:
            self._state, self._note = state, note
            self._listeners.tell(StateChanged(state))

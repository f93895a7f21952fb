"""What a reader can do about an error, as a word that the window has a button for."""

from __future__ import annotations

import enum


class Advice(enum.StrEnum):
    """What the reader can do about an error; the window has a button for each."""

    RETRY = "retry"
    CHOOSE_MODEL = "choose-model"
    OPEN_FOLDER = "open-folder"
    NEW_CHAT = "new-chat"

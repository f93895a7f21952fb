"""Chats without a window: messages, their tree, and the session that carries a question to its answer.

Knows no Qt, no database and no engine; what it needs of them is said by `answer` and `chat_store`.
"""

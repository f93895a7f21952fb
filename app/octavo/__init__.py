"""Octavo's desktop application: chats, their store and the window over the engine in the same process.

Importing this package loads neither Qt nor torch.
"""

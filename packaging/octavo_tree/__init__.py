"""The private tree: Octavo with its own interpreter and libraries in one folder that can be moved and made read-only.

Runs inside the developer environment, from which it copies. Knows nothing of installers, which only wrap the folder.
"""

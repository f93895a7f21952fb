"""KV pages on disk, so that a chat opened after a restart does not compute its history again."""

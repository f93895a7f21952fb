"""Models: reading their files, and computing them over KV pages. Knows nothing of chats, scheduling or sampling."""

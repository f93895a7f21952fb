"""The window and its parts. Widgets draw and emit; chats answer; the application wires."""

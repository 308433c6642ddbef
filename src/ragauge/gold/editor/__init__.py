"""The browser form of `gold edit`: what it shows and saves, and the server that it talks to."""

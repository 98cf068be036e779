"""WebSockets: the event stream, attached terminals and streaming threads."""

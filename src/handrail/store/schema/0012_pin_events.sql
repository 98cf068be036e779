-- The events with the accepted tools of MCP servers: every start of the daemon reads them.
CREATE INDEX events_of_pins ON events (seq) WHERE kind IN ('ServerToolsPinned');

-- The events that say whether agents are paused: every start of the daemon reads them.
CREATE INDEX events_of_pauses ON events (seq) WHERE kind IN ('AgentsPaused', 'AgentsResumed');

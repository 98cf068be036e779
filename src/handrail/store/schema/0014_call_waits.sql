-- When a person was asked whether a call may run, and after it ran, to review its result. Both wait for a person.
ALTER TABLE calls ADD COLUMN asked_at INTEGER;
ALTER TABLE calls ADD COLUMN reviewed_at INTEGER;

UPDATE calls SET asked_at = approvals.opened_at FROM approvals
WHERE approvals.call = calls.id AND (calls.started_seq IS NULL OR approvals.opened_seq < calls.started_seq);
UPDATE calls SET reviewed_at = approvals.opened_at FROM approvals
WHERE approvals.call = calls.id AND approvals.opened_seq > calls.started_seq;

-- How the command of a call ended, if it ran one. Taken from the result in its CallSettled event.
ALTER TABLE calls ADD COLUMN exit_code INTEGER;
ALTER TABLE calls ADD COLUMN signal TEXT;

UPDATE calls SET
    exit_code = (SELECT json_extract(payload, '$.result.data.exit_code') FROM events
                 WHERE seq = calls.settled_seq AND json_type(payload, '$.result.data.exit_code') = 'integer'),
    signal = (SELECT json_extract(payload, '$.result.data.signal') FROM events
              WHERE seq = calls.settled_seq AND json_type(payload, '$.result.data.signal') = 'text')
WHERE tool IN ('execute_command', 'client_work') AND settled_seq IS NOT NULL;

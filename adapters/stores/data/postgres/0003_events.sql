-- Events from outside. An acknowledged one stays for a while without its content, as the memory of
-- its id; `seen` grows when an id comes again, so that the longest unseen is forgotten first.

CREATE SEQUENCE events_seen;

CREATE TABLE events (
    session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    event_key text NOT NULL,
    seen bigint NOT NULL DEFAULT nextval('events_seen'),
    event text,
    PRIMARY KEY (session_id, event_key)
);
CREATE INDEX events_pending ON events (session_id, seq) WHERE event IS NOT NULL;
CREATE INDEX events_forget ON events (session_id, seen) WHERE event IS NULL;

COMMENT ON COLUMN events.event IS 'JSON of every field; null once acknowledged';

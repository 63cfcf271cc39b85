-- Conversations and their messages. Runs inside one transaction with search_path on our schema.
-- Keys come from postgres_text.index_key; a body is the message's JSON, byte for byte. It is json and
-- not jsonb: jsonb refuses \u0000 and forgets the order of keys. Use body->>'text' and the like.

CREATE TABLE sessions (
    session_id text PRIMARY KEY,
    name text NOT NULL,
    incarnation bigint GENERATED ALWAYS AS IDENTITY,
    parent text REFERENCES sessions ON DELETE CASCADE,
    message_count bigint NOT NULL DEFAULT 0,
    revision bigint NOT NULL DEFAULT 0,
    window_in bigint NOT NULL DEFAULT 0,
    window_out bigint NOT NULL DEFAULT 0,
    total_in bigint NOT NULL DEFAULT 0,
    total_out bigint NOT NULL DEFAULT 0,
    total_cache_creation bigint NOT NULL DEFAULT 0,
    total_cache_read bigint NOT NULL DEFAULT 0,
    turn_count bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_updated ON sessions (updated_at);

COMMENT ON COLUMN sessions.incarnation IS 'tells a session that was deleted and made again from the old one';
COMMENT ON COLUMN sessions.message_count IS 'the next seq; its row lock orders appends, so seq has no gaps';
COMMENT ON COLUMN sessions.revision IS 'grows with each append and amendment; readers ask for what is newer';

CREATE TABLE messages (
    session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq bigint NOT NULL,
    message_id text NOT NULL,
    revision bigint NOT NULL,
    sender text NOT NULL,
    is_compaction boolean NOT NULL,
    body json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, seq),
    UNIQUE (session_id, message_id)
);
CREATE INDEX messages_revision ON messages (session_id, revision);

CREATE TABLE permissions (
    session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    tool_name text NOT NULL,
    input_key text NOT NULL,
    status text NOT NULL CHECK (status IN ('granted', 'denied', 'unset')),
    PRIMARY KEY (session_id, tool_name, input_key)
);

-- Requests answered from outside, and the agent's own plan.

CREATE TABLE inbox_items (
    session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    item_key text NOT NULL,
    id text NOT NULL,
    tag text NOT NULL,
    request text NOT NULL,
    response text,
    status text NOT NULL CHECK (status IN ('pending', 'resolved', 'consumed')),
    blocking boolean NOT NULL,
    created_at text NOT NULL,
    resolved_at text,
    PRIMARY KEY (session_id, item_key)
);
CREATE INDEX inbox_items_status ON inbox_items (session_id, status, seq);

CREATE TABLE tasks (
    session_id text NOT NULL REFERENCES sessions ON DELETE CASCADE,
    position bigint NOT NULL,
    task_key text NOT NULL,
    id text NOT NULL,
    content text NOT NULL,
    active_form text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'in_progress', 'completed')),
    PRIMARY KEY (session_id, position)
);
CREATE INDEX tasks_key ON tasks (session_id, task_key);

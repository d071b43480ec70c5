-- Version 1 of the tables in PostgreSQL. sqlite.sql has the same tables.

-- The processes that have the store open. A lock shows whether one is alive, not its row.
CREATE TABLE instances (
    id         TEXT    NOT NULL PRIMARY KEY,
    lock_key   BIGINT  NOT NULL,
    started_at TEXT    NOT NULL
);

CREATE TABLE sessions (
    key        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL,
    person     TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    -- Microseconds since 1970, for order and age.
    created_us BIGINT  NOT NULL,
    used_us    BIGINT  NOT NULL,
    messages   BIGINT  NOT NULL
);
CREATE INDEX sessions_of ON sessions (tenant, person, created_us, key);
CREATE INDEX sessions_used ON sessions (used_us);

CREATE TABLE messages (
    session  BIGINT  NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    position BIGINT  NOT NULL,
    message  TEXT    NOT NULL,
    PRIMARY KEY (session, position)
);

-- `instance` has the run while its state is `running`. `parameters` is one JSON value.
CREATE TABLE runs (
    key           BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    session       BIGINT  NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    state         TEXT    NOT NULL CHECK (state IN ('running', 'waiting', 'interrupted', 'finished')),
    instance      TEXT,
    model         TEXT    NOT NULL,
    created_at    TEXT    NOT NULL,
    created_us    BIGINT  NOT NULL,
    updated_at    TEXT    NOT NULL,
    events_before BIGINT  NOT NULL,
    outcome       TEXT,
    parameters    TEXT,
    CHECK ((state = 'running') = (instance IS NOT NULL))
);
CREATE UNIQUE INDEX runs_unfinished ON runs (session) WHERE state <> 'finished';
CREATE INDEX runs_of ON runs (session, key);
CREATE INDEX runs_of_instance ON runs (instance) WHERE instance IS NOT NULL;

-- The events of one append are one row: `events` has one of them on each line.
CREATE TABLE run_events (
    run       BIGINT  NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    last_seq  BIGINT  NOT NULL,
    first_seq BIGINT  NOT NULL,
    at        TEXT    NOT NULL,
    events    TEXT    NOT NULL,
    PRIMARY KEY (run, last_seq)
);

-- The state and the conversation of an unfinished run.
CREATE TABLE run_states (
    run      BIGINT  NOT NULL PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    state    TEXT    NOT NULL,
    messages BIGINT  NOT NULL
);
CREATE TABLE run_messages (
    run      BIGINT  NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    position BIGINT  NOT NULL,
    message  TEXT    NOT NULL,
    PRIMARY KEY (run, position)
);

-- Secrets of the store itself: the key of session ids, created at its first use.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

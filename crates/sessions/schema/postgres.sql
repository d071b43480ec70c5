-- Version 1 of the tables in PostgreSQL. sqlite.sql has the same tables.

-- Processes that have opened the store. A lock shows whether a process is alive; its row does not.
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
    -- Microseconds since 1970, for sorting and age limits.
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

-- `instance` is the process that executes the run while its state is `running`. `parameters` is one
-- JSON value.
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

-- Each row holds the events of one append. `events` has one event on each line.
CREATE TABLE run_events (
    run       BIGINT  NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    last_seq  BIGINT  NOT NULL,
    first_seq BIGINT  NOT NULL,
    at        TEXT    NOT NULL,
    events    TEXT    NOT NULL,
    PRIMARY KEY (run, last_seq)
);

-- State and conversation of unfinished runs.
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

-- Secrets of the store. The only one is the key of session ids, which is created at first use.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

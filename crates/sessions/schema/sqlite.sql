-- Version 1 of the tables in SQLite. postgres.sql has the same tables.

-- Processes that have opened the store. A lock shows whether a process is alive; its row does not.
CREATE TABLE instances (
    id         TEXT    NOT NULL PRIMARY KEY,
    lock_key   INTEGER NOT NULL,
    started_at TEXT    NOT NULL
) STRICT;

CREATE TABLE sessions (
    key        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    tenant     TEXT    NOT NULL,
    person     TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    created_at TEXT    NOT NULL,
    -- Microseconds since 1970, for sorting and age limits.
    created_us INTEGER NOT NULL,
    used_us    INTEGER NOT NULL,
    messages   INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_of ON sessions (tenant, person, created_us, key);
CREATE INDEX sessions_used ON sessions (used_us);

CREATE TABLE messages (
    session  INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message  TEXT    NOT NULL,
    PRIMARY KEY (session, position)
) STRICT;

-- `instance` is the process that executes the run while its state is `running`. `parameters` is one
-- JSON value.
CREATE TABLE runs (
    key           INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    session       INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    state         TEXT    NOT NULL CHECK (state IN ('running', 'waiting', 'interrupted', 'finished')),
    instance      TEXT,
    model         TEXT    NOT NULL,
    created_at    TEXT    NOT NULL,
    created_us    INTEGER NOT NULL,
    updated_at    TEXT    NOT NULL,
    events_before INTEGER NOT NULL,
    outcome       TEXT,
    parameters    TEXT,
    CHECK ((state = 'running') = (instance IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX runs_unfinished ON runs (session) WHERE state <> 'finished';
CREATE INDEX runs_of ON runs (session, key);
CREATE INDEX runs_of_instance ON runs (instance) WHERE instance IS NOT NULL;

-- Each row holds the events of one append. `events` has one event on each line.
CREATE TABLE run_events (
    run       INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    last_seq  INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    at        TEXT    NOT NULL,
    events    TEXT    NOT NULL,
    PRIMARY KEY (run, last_seq)
) STRICT;

-- State and conversation of unfinished runs.
CREATE TABLE run_states (
    run      INTEGER NOT NULL PRIMARY KEY REFERENCES runs (key) ON DELETE CASCADE,
    state    TEXT    NOT NULL,
    messages INTEGER NOT NULL
) STRICT;
CREATE TABLE run_messages (
    run      INTEGER NOT NULL REFERENCES runs (key) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message  TEXT    NOT NULL,
    PRIMARY KEY (run, position)
) STRICT;

-- Secrets of the store. The only one is the key of session ids, which is created at first use.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Identifies database files of this server ("sbkg" in ASCII), with schema version 1.
PRAGMA application_id = 1935829863;
PRAGMA user_version = 1;

CREATE TABLE conversations (
    number          INTEGER PRIMARY KEY,
    conversation_id TEXT NOT NULL UNIQUE,
    -- Time of the last change of a node or an edge, in RFC 3339 and UTC.
    updated_at      TEXT NOT NULL
) STRICT;

CREATE TABLE nodes (
    -- Sort key of pages. AUTOINCREMENT: a node that is deleted and added again is the last one.
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations,
    id           TEXT NOT NULL,
    label        TEXT,
    type         TEXT,
    -- A JSON object.
    data         TEXT NOT NULL,
    UNIQUE (conversation, id)
) STRICT;

CREATE TABLE edges (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations,
    id           TEXT NOT NULL,
    source       INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    target       INTEGER NOT NULL REFERENCES nodes ON DELETE CASCADE,
    label        TEXT NOT NULL,
    -- A JSON object.
    data         TEXT NOT NULL,
    UNIQUE (conversation, id)
) STRICT;

CREATE INDEX edges_by_source ON edges (source);
CREATE INDEX edges_by_target ON edges (target);

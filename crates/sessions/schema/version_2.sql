-- Tables that version 2 adds, in SQLite and PostgreSQL.

-- Tool calls of the last minute, for limits per minute.
CREATE TABLE tool_calls (
    tenant TEXT   NOT NULL,
    person TEXT   NOT NULL,
    tool   TEXT   NOT NULL,
    at_us  BIGINT NOT NULL
);
CREATE INDEX tool_calls_of ON tool_calls (tenant, person);

-- Tables that version 3 adds, in SQLite and PostgreSQL.

-- Audit records. Ids are UUIDs of version 7, which sort by time. `record` is one JSON object.
CREATE TABLE audit (
    id     TEXT   NOT NULL PRIMARY KEY,
    tenant TEXT   NOT NULL,
    person TEXT   NOT NULL,
    at_us  BIGINT NOT NULL,
    record TEXT   NOT NULL
);
CREATE INDEX audit_of ON audit (tenant, person, id);
CREATE INDEX audit_at ON audit (at_us);

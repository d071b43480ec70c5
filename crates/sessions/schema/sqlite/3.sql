-- Version 3. Secrets of the store itself: the key of ids, which is made when it is needed first.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

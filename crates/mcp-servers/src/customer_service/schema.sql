-- Identifies database files of this server ("sbcs" in ASCII), with schema version 1.
PRAGMA application_id = 1935827827;
PRAGMA user_version = 1;

CREATE TABLE customers (
    customer_id INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    email       TEXT NOT NULL UNIQUE,
    city        TEXT NOT NULL,
    country     TEXT NOT NULL,
    -- YYYY-MM-DD, which sorts as text.
    joined_on   TEXT NOT NULL
) STRICT;

CREATE INDEX customers_by_joined_on ON customers (joined_on, customer_id);

CREATE TABLE purchases (
    purchase_id  INTEGER PRIMARY KEY,
    customer_id  INTEGER NOT NULL REFERENCES customers,
    purchased_on TEXT NOT NULL,
    item         TEXT NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0)
) STRICT;

CREATE INDEX purchases_by_customer ON purchases (customer_id);

CREATE TABLE support_tickets (
    -- AUTOINCREMENT: the numbers of deleted tickets are never reused.
    ticket_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    customer_id INTEGER NOT NULL REFERENCES customers,
    subject     TEXT NOT NULL,
    description TEXT,
    priority    TEXT NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
    status      TEXT NOT NULL DEFAULT 'open',
    created_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) STRICT;

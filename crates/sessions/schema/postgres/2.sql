-- Version 2. What a run was begun with, one JSON value; null where nothing is known of it.
ALTER TABLE runs ADD COLUMN wish TEXT;

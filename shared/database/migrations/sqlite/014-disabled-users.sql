-- A user who cannot sign in, until an operator lifts it.
ALTER TABLE users ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;

-- Random bytes that all processes of a gateway share and nobody else knows, such as the key that signs links.
CREATE TABLE secrets (
  name TEXT PRIMARY KEY NOT NULL,
  value BLOB NOT NULL
) STRICT;

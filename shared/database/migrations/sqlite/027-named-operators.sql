-- The addresses of SLUICE_ADMIN_EMAIL that were made operators, once: later starts leave to operators what becomes of them.
CREATE TABLE named_operators (
  email TEXT PRIMARY KEY NOT NULL,
  made_at INTEGER NOT NULL
) STRICT;

-- The addresses of SLUICE_ADMIN_EMAIL that were made operators, once: later starts leave to operators what becomes of them.
CREATE TABLE named_operators (
  email TEXT COLLATE "C" PRIMARY KEY,
  made_at BIGINT NOT NULL
);

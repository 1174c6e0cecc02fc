CREATE TABLE threads (
  num     INTEGER PRIMARY KEY,
  id      BLOB NOT NULL UNIQUE,       -- opaque: UTF-8, never a path, never SQL
  origin  INTEGER,                    -- a fork: the thread whose history it shares …
  shared  INTEGER NOT NULL DEFAULT 0, -- … up to this event
  root    BLOB NOT NULL,              -- the id from which the hash chain starts
  seq     INTEGER NOT NULL,
  hash    BLOB NOT NULL,
  status  TEXT NOT NULL,
  run     INTEGER NOT NULL,
  window  INTEGER NOT NULL,
  title   TEXT NOT NULL,
  opened  REAL NOT NULL,
  updated REAL NOT NULL,
  owner   TEXT,
  lease   REAL NOT NULL DEFAULT 0
);
CREATE INDEX threads_updated ON threads (updated);
CREATE INDEX threads_status ON threads (status, updated) WHERE status NOT IN ('idle', 'completed');

CREATE TABLE events (
  thread INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  time   INTEGER NOT NULL,            -- microseconds since 1970
  kind   TEXT NOT NULL,
  body   TEXT NOT NULL,
  blobs  TEXT NOT NULL,
  hash   BLOB NOT NULL,
  PRIMARY KEY (thread, seq)
) WITHOUT ROWID;

CREATE TABLE blobs (
  hash BLOB PRIMARY KEY,              -- SHA-256 of the text
  text TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE runs (
  thread   INTEGER NOT NULL,
  seq      INTEGER NOT NULL,
  status   TEXT NOT NULL,
  stop     TEXT,
  started  REAL NOT NULL,
  finished REAL,
  input    INTEGER NOT NULL,
  output   INTEGER NOT NULL,
  cost     REAL,
  PRIMARY KEY (thread, seq)
) WITHOUT ROWID;

CREATE TABLE pending (
  id     TEXT PRIMARY KEY,
  thread INTEGER NOT NULL,
  call   TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  tool   TEXT NOT NULL,
  time   REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_thread ON pending (thread, call);

CREATE TABLE fields (
  thread INTEGER NOT NULL,
  name   TEXT NOT NULL,
  seq    INTEGER NOT NULL,
  PRIMARY KEY (thread, name, seq)
) WITHOUT ROWID;

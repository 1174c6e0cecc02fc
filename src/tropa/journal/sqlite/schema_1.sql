CREATE TABLE tropa_threads (
  num     INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice
  id      BLOB NOT NULL,               -- opaque: UTF-8, never a path, never SQL
  key     BLOB NOT NULL UNIQUE,        -- its hash, as an id may be long
  origin  INTEGER,                     -- a fork: the thread whose history it shares …
  base    INTEGER NOT NULL DEFAULT 0,  -- … up to this event; without an origin: what came before was pruned
  anchor  BLOB NOT NULL,               -- the hash after event `base`
  forked  INTEGER NOT NULL DEFAULT 0,  -- approvals up to this event do not hold here
  kept    BLOB,                        -- the text (in blobs) with the state at `base` of a pruned thread
  seal    BLOB NOT NULL,               -- hash over the columns above
  seq     INTEGER NOT NULL,            -- from here on: what the events say, for quick reading
  hash    BLOB NOT NULL,
  status  TEXT NOT NULL,
  run     INTEGER NOT NULL,
  cut     INTEGER NOT NULL,            -- the first event that is still sent to the model
  title   TEXT NOT NULL,
  opened  REAL NOT NULL,
  updated REAL NOT NULL,
  owner   BLOB,                        -- who works on the thread …
  lease   REAL NOT NULL DEFAULT 0      -- … until then
);
CREATE INDEX tropa_threads_updated ON tropa_threads (updated);
CREATE INDEX tropa_threads_status ON tropa_threads (status, updated) WHERE status NOT IN ('idle', 'completed');
CREATE INDEX tropa_threads_origin ON tropa_threads (origin) WHERE origin IS NOT NULL;

CREATE TABLE tropa_events (
  at    INTEGER PRIMARY KEY,           -- thread << 32 | seq: see the view tropa_journal
  time  INTEGER NOT NULL,              -- microseconds since 1970
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL,                 -- strict JSON
  blobs TEXT NOT NULL,                 -- where large texts belong: [[path, hash], …]
  hash  BLOB NOT NULL                  -- over the hash before and all of this row
);

CREATE TABLE tropa_blobs (
  hash BLOB PRIMARY KEY,               -- SHA-256 of the text
  text BLOB NOT NULL                   -- UTF-8
);

CREATE TABLE tropa_runs (
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
CREATE INDEX tropa_runs_started ON tropa_runs (started);

CREATE TABLE tropa_pending (
  thread INTEGER NOT NULL,
  id     BLOB NOT NULL,
  call   BLOB NOT NULL,
  seq    INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  tool   BLOB NOT NULL,
  time   REAL NOT NULL,
  PRIMARY KEY (thread, id)
) WITHOUT ROWID;
CREATE INDEX tropa_pending_id ON tropa_pending (id);

CREATE TABLE tropa_fields (
  thread INTEGER NOT NULL,
  name   BLOB NOT NULL,
  seq    INTEGER NOT NULL,             -- an event that the field's value is made of
  PRIMARY KEY (thread, name, seq)
) WITHOUT ROWID;

CREATE VIEW tropa_journal AS
  SELECT CAST(t.id AS TEXT) AS thread, e.at & 4294967295 AS seq, datetime(e.time / 1000000, 'unixepoch') AS time,
         e.kind, e.body
  FROM tropa_events e JOIN tropa_threads t ON t.num = e.at >> 32

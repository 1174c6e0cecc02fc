CREATE TABLE tropa_threads (
  num     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- never given twice
  id      BYTEA NOT NULL,              -- opaque: UTF-8, never a path, never SQL
  key     BYTEA NOT NULL UNIQUE,       -- its hash, as an id may be long
  origin  BIGINT,                      -- a fork: the thread whose history it shares …
  base    BIGINT NOT NULL DEFAULT 0,   -- … up to this event; without an origin: what came before was pruned
  anchor  BYTEA NOT NULL,              -- the hash after event `base`
  forked  BIGINT NOT NULL DEFAULT 0,   -- approvals up to this event do not hold here
  kept    BYTEA,                       -- the text (in blobs) with the state at `base` of a pruned thread
  seal    BYTEA NOT NULL,              -- hash over the columns above
  seq     BIGINT NOT NULL,             -- from here on: what the events say, for quick reading
  hash    BYTEA NOT NULL,
  status  TEXT NOT NULL,
  run     BIGINT NOT NULL,
  cut     BIGINT NOT NULL,             -- the first event that is still sent to the model
  title   TEXT NOT NULL,
  opened  DOUBLE PRECISION NOT NULL,
  updated DOUBLE PRECISION NOT NULL,
  owner   BYTEA,                       -- who works on the thread …
  lease   DOUBLE PRECISION NOT NULL DEFAULT 0 -- … until then
) WITH (fillfactor = 70);
CREATE INDEX tropa_threads_updated ON tropa_threads (updated);
CREATE INDEX tropa_threads_status ON tropa_threads (status, updated) WHERE status NOT IN ('idle', 'completed');
CREATE INDEX tropa_threads_origin ON tropa_threads (origin) WHERE origin IS NOT NULL;

CREATE TABLE tropa_events (
  at    BIGINT PRIMARY KEY,            -- thread << 32 | seq: see the view tropa_journal
  time  BIGINT NOT NULL,               -- microseconds since 1970
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL,                 -- strict JSON; not JSONB, which cannot carry \u0000 and lone surrogates
  blobs TEXT NOT NULL,                 -- where large texts belong: [[path, hash], …]
  hash  BYTEA NOT NULL                 -- over the hash before and all of this row
);

CREATE TABLE tropa_blobs (
  hash BYTEA PRIMARY KEY,              -- SHA-256 of the text
  text BYTEA NOT NULL                  -- UTF-8
);

CREATE TABLE tropa_runs (
  thread   BIGINT NOT NULL,
  seq      BIGINT NOT NULL,
  status   TEXT NOT NULL,
  stop     TEXT,
  started  DOUBLE PRECISION NOT NULL,
  finished DOUBLE PRECISION,
  input    BIGINT NOT NULL,
  output   BIGINT NOT NULL,
  cost     DOUBLE PRECISION,
  PRIMARY KEY (thread, seq)
) WITH (fillfactor = 70);
CREATE INDEX tropa_runs_started ON tropa_runs (started);

CREATE TABLE tropa_pending (
  thread BIGINT NOT NULL,
  id     BYTEA NOT NULL,
  call   BYTEA NOT NULL,
  seq    BIGINT NOT NULL,
  kind   TEXT NOT NULL,
  tool   BYTEA NOT NULL,
  time   DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (thread, id)
);
CREATE INDEX tropa_pending_id ON tropa_pending (id);

CREATE TABLE tropa_fields (
  thread BIGINT NOT NULL,
  name   BYTEA NOT NULL,
  seq    BIGINT NOT NULL,              -- an event that the field's value is made of
  PRIMARY KEY (thread, name, seq)
);

CREATE VIEW tropa_journal AS
  SELECT convert_from(t.id, 'UTF8') AS thread, e.at & 4294967295 AS seq, to_timestamp(e.time / 1000000.0) AS time,
         e.kind, e.body
  FROM tropa_events e JOIN tropa_threads t ON t.num = e.at >> 32

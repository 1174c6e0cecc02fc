"""Threads that nobody works on though they could go on, in one statement over the tables of journal and queue.

It is asked in SQL because it compares both, by the server's clock, without carrying every waiting thread over the wire.
A thread is left when it has no job and

- it is running, and the claim on it has ended: its process died, or was cut off; or
- it is parked, was quiet for some seconds (whoever decided may go on with it), and what its first open call waited for has
  been decided.

A fork is left alone until somebody starts a run in it.
"""

from __future__ import annotations

from typing import Final

LEFT: Final = """
SELECT t.id FROM tropa_threads t
WHERE t.seq > t.base
  AND t.lease < extract(epoch FROM clock_timestamp())
  AND (
    t.status = 'running'
    OR (t.status = 'waiting' AND t.updated < extract(epoch FROM clock_timestamp()) - 3 AND (
      NOT EXISTS (SELECT 1 FROM tropa_pending p WHERE p.thread = t.num)
      OR NOT EXISTS (
        SELECT 1 FROM tropa_pending p WHERE p.thread = t.num AND p.id = convert_to((
          SELECT e.body::json -> 'waits' ->> 0 FROM tropa_events e
          WHERE e.at > t.num << 32 AND e.at <= t.num << 32 | t.seq AND e.kind = 'run.paused'
          ORDER BY e.at DESC LIMIT 1
        ), 'UTF8')
      )
    ))
  )
  AND NOT EXISTS (
    SELECT 1 FROM procrastinate_jobs j
    WHERE j.lock = encode(sha256(t.id), 'hex') AND j.status IN ('todo', 'doing') AND j.task_name = %(task)s
  )
ORDER BY t.updated LIMIT 500
"""

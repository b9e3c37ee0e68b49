"""The delivery half: which event goes where, when a join fires, how a run ends. It knows of no language model.

Pure, and rebuilt from records: `topology` (wiring and table, compiled), `scopes` (what is live below what),
`deliveries`, `joins`, `book` (all of this for one run), `ledger` (the one door to it), and what the ledger does:
`publishing`, `deciding`, `cancelling`, `ladder` and `mending` (who is asked when a handler failed for good, one scope
after the other outwards), `stalling` (what is lacking, for people), `effects` (what follows from a record).

Carrying it out: `bus` (write a record, apply it, do what follows), `transports` (inboxes, workers, turns between runs),
`supervisor` and `attempt` (one try at a delivery), `pacing` (how many items of a map are open), `pressure` (who waits
for whom when too much waits), `timekeeper` and `clock`, `endings` (grace, time limits of runs, drain), `blocking`
(handlers that keep the event loop), `calllog` (what was asked of the outside), `journal` and `codec` (records kept),
`runs` and `watching` (one run, and who looks on), `rebuilding` and `reopening` (a run from its records).
"""

"""A second opinion on the ledger: random programs, a naive model that looks at everything, and a driver of both."""

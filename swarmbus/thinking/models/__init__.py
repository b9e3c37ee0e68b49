"""Everything that answers a `ModelRequest`: the protocol, the scripted model, model servers, and how names resolve."""

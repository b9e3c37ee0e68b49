"""The thinking half: the agent loop, its tools, limits and context, and the models; it knows nothing of the bus."""

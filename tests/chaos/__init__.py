"""Random swarms under random disturbances over the public API, with a model of what must come out."""

"""The delivery half: which event goes where, when a join fires, how a run ends. It knows of no language model."""

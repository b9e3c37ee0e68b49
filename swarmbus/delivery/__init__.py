"""The delivery half: which event goes where, when a join fires, how a run ends. It has never heard of a language model."""

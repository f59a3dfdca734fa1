"""Running an agent: the protocol, the workers, the stage file."""

"""The skills for coding agents: put into clients and repositories, and what they need to see done."""

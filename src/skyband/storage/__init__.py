"""How state is declared, saved and read again: the only place that lays it out."""

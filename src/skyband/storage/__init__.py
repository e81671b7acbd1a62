"""Declares, saves and restores state; no other package decides how state is laid out in memory or in bytes."""

"""Loops that several families share."""

"""Loops for objects assembled from several streams."""

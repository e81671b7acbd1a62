"""The errors and the warnings a user can meet; they say what was wrong, what is allowed and what to do."""


class SkybandError(Exception):
    """Base of every error that skyband raises on purpose."""


class QueryError(SkybandError, ValueError):
    """A query that makes no sense, or that cannot be answered over the data it was given."""


class StateError(SkybandError, ValueError):
    """A saved state that cannot be used: it is damaged, from another version, or of another query."""


class DataWarning(UserWarning):
    """Many rows are left out of a stream, late or invalid: most likely not what was meant."""


class SettingsWarning(UserWarning):
    """A Spark session in which skyband works, but not as fast or as safely as it could."""

"""Policy options come as texts; these are the rules all of them share."""

from nodeagent.resources.errors import OptionError

TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))


def parse_bool(name: str, value: str) -> bool:
    """Read what Go's strconv.ParseBool takes for a boolean."""
    if value not in TRUE | FALSE:
        raise OptionError(
            f'bad value for option "{name}": strconv.ParseBool: parsing "{value}": invalid syntax'
        )
    return value in TRUE

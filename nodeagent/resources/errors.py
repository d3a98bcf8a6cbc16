"""Why a configuration or a request cannot be served."""

TOPOLOGY_AFFINITY_ERROR = "TopologyAffinityError"
SMT_ALIGNMENT_ERROR = "SMTAlignmentError"
UNEXPECTED_ADMISSION_ERROR = "UnexpectedAdmissionError"


class OptionError(ValueError):
    """A policy or one of its options cannot be used; the message says which, and why."""


class AllocationError(Exception):
    """A container cannot get what it asks for. Nothing was changed for it."""

    reason = UNEXPECTED_ADMISSION_ERROR


class NotEnoughCpus(AllocationError):
    """Fewer CPUs are free than were asked for."""

    def __init__(self, requested: int, available: int) -> None:
        super().__init__(
            f"not enough cpus available to satisfy request: requested={requested}, available={available}"
        )


class SmtAlignmentError(AllocationError):
    """full-pcpus-only cannot serve the request in whole cores."""

    reason = SMT_ALIGNMENT_ERROR


class SharedPoolEmpty(AllocationError):
    """The request would leave no CPU for the containers without CPUs of their own."""

"""Who wants to know what the pods room does, to count and time it."""

from typing import Protocol


class PodObserver(Protocol):
    """Told of every operation; `container_type` is "container" or "init_container" as kubelet has it."""

    def pod_started(self, seconds: float) -> None:
        """A pod is running, so long after it was first seen."""
        ...

    def pod_synced(self, operation: str, seconds: float) -> None:
        """A worker took one step: sync or terminating."""
        ...

    def pod_refused(self, reason: str) -> None:
        """The node did not admit a pod."""
        ...

    def container_started(self, container_type: str) -> None:
        """A container's program runs."""
        ...

    def container_not_started(self, container_type: str, code: str) -> None:
        """A container's program could not be run."""
        ...

    def container_ended(self, container_type: str, exit_code: int, reason: str) -> None:
        """A container's main process is gone."""
        ...

"""The keeper's event loop: epoll and a handler for each descriptor; without timers, so idling is free."""

import select
from collections.abc import Callable

# the events that happened, as select.EPOLL* bits
Handler = Callable[[int], None]


class Loop:
    """Calls the handler of every descriptor that is ready, each once a turn."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, tuple[int, Handler]] = {}
        self._turn = 0

    def watch(self, descriptor: int, handler: Handler, events: int = select.EPOLLIN) -> None:
        """Begin to watch; hang-ups and errors are always among the events."""
        self._epoll.register(descriptor, events)
        self._handlers[descriptor] = (self._turn, handler)

    def alter(self, descriptor: int, events: int) -> None:
        """Watch for other events."""
        self._epoll.modify(descriptor, events)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching, before the descriptor is closed; one that is not watched is no error."""
        if self._handlers.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def turn(self) -> None:
        """Wait until something is ready and handle it."""
        ready = self._epoll.poll()
        self._turn += 1
        for descriptor, events in ready:
            since, handler = self._handlers.get(descriptor, (self._turn, None))
            # the number may have been closed and given out again earlier in this turn
            if handler is not None and since < self._turn:
                handler(events)

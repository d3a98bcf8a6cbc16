"""Which servers the configuration asks for."""

from nodeagent.server.app import create_app, create_healthz_app
from nodeagent.server.listener import Listener, ListenError
from nodeagent.server.view import ServerView


async def open_servers(view: ServerView) -> list[Listener]:
    """Open the read-only server and the health port; raises ListenError, and then leaves none open."""
    kubelet = view.config.kubelet
    wanted = (
        (create_app, kubelet.address, kubelet.read_only_port, "readOnlyPort"),
        (create_healthz_app, kubelet.healthz_bind_address, kubelet.healthz_port, "healthzPort"),
    )
    opened: list[Listener] = []
    for make_app, address, port, setting in wanted:
        if port and kubelet.enable_server:
            try:
                opened.append(await Listener(make_app(view)).start(address, port, setting))
            except ListenError:
                for listener in opened:
                    await listener.close()
                raise
    return opened

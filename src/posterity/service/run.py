"""Start a service in a folder, and look up how a decision of it came about."""

from __future__ import annotations

import errno
import fcntl
import gc
import ipaddress
import signal
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from posterity.service.app import App, create_app
from posterity.service.connections import LONGEST_IDLE, BoundedProtocol, close_late
from posterity.service.databases import explain_failures, read_url
from posterity.service.demo import demo_traffic
from posterity.service.engine import Engine
from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment, pick
from posterity.service.store import Store

PORT = 7067
# Seconds that another thread may go on while the one that answers requests waits: Python's own are
# ten times as long.
LONGEST_TURN = 0.0005


def serve(
    folder: str,
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    database: str | None = None,
    public: bool = False,
    demo: bool = False,
    decide_only: bool = False,
    new_token: bool = False,
) -> None:
    """Serve until the process is told to stop; with ``demo``, an example with simulated traffic.

    With ``new_token`` it makes one more token of role admin and prints it.

    With ``decide_only`` it decides and predicts beside a server that learns, in a database of
    PostgreSQL that both have.

    Raises
    ------
    ValueError
        The address can be reached from elsewhere and ``public`` was not said, the port is in use,
        the database can't be opened or read, or another server has it.
    """
    refuse_public(host, public)
    url = read_url(folder, database)
    if decide_only and url.get_backend_name() != "postgresql":
        raise ValueError("a server that only decides needs --database postgresql://...")
    if decide_only and new_token:
        raise ValueError("a server that only decides makes no token: start the one that learns")
    with lock_folder(folder), bind(host, port) as listener, explain_failures(url):
        store = open_store(folder, database)
        try:
            _run(store, listener, host, demo=demo, learns=not decide_only, new_token=new_token)
        finally:
            store.close()


def _run(
    store: Store, listener: socket.socket, host: str, *, demo: bool, learns: bool, new_token: bool
) -> None:
    if learns:
        store.claim()
    # A row that can't be subtracted without a loss: all others are learned again instead.
    warnings.filterwarnings("error", "the rows that were unlearned")

    async def begun(engine: Engine) -> None:
        _share_interpreter()
        if demo:
            await demo_traffic(engine)

    engine = Engine(store, learns=learns)
    app = create_app(
        engine, announce=_print_token, background=begun, visitor=demo, new_token=new_token
    )
    build_server(engine, app, listener, host).run(sockets=[listener])


def build_server(engine: Engine, app: App, listener: socket.socket, host: str) -> uvicorn.Server:
    """A server of HTTP that listens on a socket, and starts and stops the engine."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        http=BoundedProtocol,
        ws="none",
        timeout_keep_alive=LONGEST_IDLE,
        timeout_graceful_shutdown=10,
        server_header=False,
    )
    port = listener.getsockname()[1]
    place = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
    return _Server(config, engine, app.live(), place)


def bind(host: str, port: int) -> socket.socket:
    """A socket of that address, which is nobody else's.

    Raises
    ------
    ValueError
        The port is in use, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"port {port} of {host} is in use: stop what uses it, or give another --port"
        elif error.errno == errno.EACCES:
            message = f"port {port} may not be used by you: give a --port from 1024 up"
        else:
            message = f"can't listen on {host} ({error.strerror}): give an address of this machine"
        raise ValueError(message) from error


@contextmanager
def lock_folder(folder: str) -> Iterator[None]:
    """Lock a folder, which is made if needed, for this process alone.

    Raises
    ------
    ValueError
        A server uses it.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = (place / "lock").open("w")
    except OSError as error:
        raise ValueError(
            f"{error.filename} can't be made ({error.strerror}): give a folder that you may "
            "write to"
        ) from error
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(f"another server uses {folder}: stop it first") from error
        yield


def _share_interpreter() -> None:
    """Have the threads that read and write, and the garbage collector, soon give way to requests.

    The collector looks at what requests leave, and not at all that is there; of ten thousand
    objects at a time it would take two milliseconds.
    """
    sys.setswitchinterval(LONGEST_TURN)
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 50, 50)


class _Server(uvicorn.Server):
    """Uvicorn's server, with a message once it listens, and errors of its start passed on.

    It ends the streams of events before it waits for all answers.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        engine: Engine,
        lifespan: AbstractAsyncContextManager[None],
        place: str,
    ) -> None:
        super().__init__(config)
        self._engine, self._life, self._place = engine, lifespan, place

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the engine, then listen."""
        await self._life.__aenter__()
        await super().startup(sockets)
        _print_line(f"listening on {self._place}")

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections once a second; uvicorn calls it ten times as often."""
        if counter % 10 == 0:
            close_late(self.server_state.connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what waits, then stop the engine."""
        await super().shutdown(sockets)
        if not self.force_exit:
            await self._life.__aexit__(None, None, None)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop the server; a second Ctrl-C ends it without waiting for answers.

        Uvicorn's own would raise the signal again after all was done, and the process would not end
        with 0.
        """
        self._engine.closing = True
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def open_store(folder: str, database: str | None) -> Store:
    """The database of a folder, or the one that is named.

    Raises
    ------
    ValueError
        It can't be opened.
    """
    url = read_url(folder, database)
    with explain_failures(url):
        return Store(url.render_as_string(hide_password=False))


def refuse_public(host: str, public: bool) -> None:
    """Refuse an address that others can reach, where nobody said that they may."""
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    if not (local or public):
        raise ValueError(
            f"{host} can be reached from other machines, and tokens would be sent unencrypted: "
            "put a proxy with TLS in front of 127.0.0.1, or give --public"
        )


def _print_token(token: str) -> None:
    _print_line(f"token, shown once: {token}")


def _print_line(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def audit(folder: str, experiment: str, id: str, database: str | None = None) -> dict[str, Any]:
    """Compute a decision again, from the log and the snapshot before it.

    Raises
    ------
    ValueError
        No such experiment or decision, or what it needs was erased.
    """
    store = open_store(folder, database)
    try:
        with explain_failures(store.engine.url):
            return _audit(store, folder, experiment, id)
    except RefusedError as error:
        raise ValueError(f"decision {id!r} can't be computed again: {error}") from error
    finally:
        store.close()


def _audit(store: Store, folder: str, experiment: str, id: str) -> dict[str, Any]:
    kept = {one["name"]: one for one in store.read_models()}.get(experiment)
    made = store.find([(experiment, id)], []).decisions.get((experiment, id))
    if kept is None or made is None:
        raise ValueError(f"{folder} has no decision {id!r} of an experiment {experiment!r}")
    served = Engine(store).restore_at(kept, made)
    if made["context"] is None or not isinstance(served, Experiment):
        raise ValueError(f"decision {id!r} was deleted: there is nothing to audit")
    if np.isnan(np.frombuffer(made["context"])).any():
        raise ValueError(f"a feature of decision {id!r} has expired: nothing can be computed")
    if np.isnan(np.frombuffer(made["means"])).all():
        raise ValueError(f"decision {id!r} was imported: another service made it")
    return _compare(served, made)


def _compare(served: Experiment, made: dict[str, Any]) -> dict[str, Any]:
    arms = len(served.settings.arms)
    allowed = np.ones((1, arms), dtype=bool)
    if made["allowed"] is not None:
        allowed = np.frombuffer(made["allowed"], dtype=bool)[None]
    probabilities, _, _ = served.propensities(np.frombuffer(made["context"])[None], allowed)
    logged = np.frombuffer(made["propensities"])
    place = int(pick(probabilities, np.array([served.draw(made["id"])]))[0])
    same = place == made["arm"] and bool(np.allclose(probabilities[0], logged, rtol=0.0, atol=1e-9))
    return {
        "decision": made["id"],
        "arm": served.settings.arms[made["arm"]],
        "arm_again": served.settings.arms[place],
        "propensities": logged.tolist(),
        "propensities_again": probabilities[0].tolist(),
        "learned_through": made["learned_through"],
        "same": same,
    }

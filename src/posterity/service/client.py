"""Clients in Python, with nothing but the standard library."""

from __future__ import annotations

import asyncio
import functools
import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

Value = float | str | bool | None
Values = Mapping[str, Value] | Sequence[Value]
Answer = dict[str, Any]
_Given = ParamSpec("_Given")
_Told = TypeVar("_Told")


class Client:
    """A client of the service; a request that fails on the way is sent again, and counts once.

    Answers are the service's JSON, as dictionaries. A method
    raises ``ValueError`` with what the service says where it refuses a request, and ``OSError``
    where there is no answer after all tries.

    Parameters
    ----------
    token : str
        As ``posterity serve`` printed it.
    url : str
    timeout : float
        Seconds until a request is sent again.
    tries : int
        How often it is sent at most. The first pause is .1 seconds, each further one twice as long.

    Examples
    --------
    >>> client = Client("a token", "http://127.0.0.1:7067")
    >>> settings = {"arms": ["red", "blue"], "features": ["age"]}
    >>> client.put("experiments", "headlines", **settings)  # doctest: +SKIP
    {'name': 'headlines', 'version': 1}
    >>> decision = client.decide("headlines", {"age": 0.5})  # doctest: +SKIP
    >>> client.reward("headlines", decision["id"], 1.0)  # doctest: +SKIP
    {'status': 'new', 'total': 1.0}
    >>> client.reward("headlines", decision["id"], 1.0)["status"]  # doctest: +SKIP
    'duplicate'
    >>> client.put("predictors", "load")["version"]  # doctest: +SKIP
    1
    >>> row = {"shop": "north", "heat": 21.5}
    >>> [client.learn("load", f"row {n}", row, 3.2)["status"] for n in (1, 2, 2)]  # doctest: +SKIP
    ['new', 'new', 'duplicate']
    >>> round(client.predict("load", row)["mean"], 1)  # doctest: +SKIP
    3.2
    >>> [one["name"] for one in client.models("predictors")]  # doctest: +SKIP
    ['load']
    >>> client.delete("predictors", "load")["status"]  # doctest: +SKIP
    'deleted'
    """

    def __init__(
        self,
        token: str,
        url: str = "http://127.0.0.1:7067",
        *,
        timeout: float = 10.0,
        tries: int = 5,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url is {url!r}: it must begin with http:// or https://")
        self.token, self.url, self.timeout, self.tries = token, url.rstrip("/"), timeout, tries

    def put(self, /, kind: str, name: str, **settings: Any) -> Answer:
        """Create one of the "experiments" or "predictors"; of an experiment also change settings.

        Parameters
        ----------
        kind : str
            "experiments" or "predictors".
        name : str
        **settings
            Those of the page on the service, such as ``arms`` or ``features``.

        Returns
        -------
        dict
            With "name" and "version".
        """
        return self._ask("PUT", kind, name, "", settings)

    def state(self, kind: str, name: str) -> Answer:
        """Settings and state of one of the "experiments" or "predictors".

        Of a predictor "schema" tells what each feature must be, and "scores" how well it predicts.
        """
        return self._ask("GET", kind, name, "", None)

    def models(self, kind: str) -> list[Answer]:
        """All "experiments" or "predictors", each as in :meth:`state`, in the order of creation."""
        told: list[Answer] = json.loads(self._send("GET", _make_path(kind), None))[kind]
        return told

    def delete(self, kind: str, name: str) -> Answer:
        """Delete one of the "experiments" or "predictors" with its log; its name is free again.

        Raises
        ------
        ValueError
            There is none of that name: 404, also where a first try was done and its answer lost.
        """
        return self._ask("DELETE", kind, name, "", None)

    def decide(self, /, experiment: str, context: Values = (), **how: Any) -> Answer:
        """An arm for a context.

        Parameters
        ----------
        experiment : str
        context : mapping or sequence
            The features by name, or in their order.
        **how
            ``id``, by which the decision is made once (by default a new one); ``arms`` to choose
            from; ``activate=False`` where it may not be shown.

        Returns
        -------
        dict
            With "id", "arm", "propensity", and "propensities", "means" and "widths" of all arms.
        """
        body = {"context": _to_json(context), "id": uuid.uuid4().hex, **how}
        return self._ask("POST", "experiments", experiment, "/decide", body)

    def reward(self, /, experiment: str, decision_id: str, value: float, **how: Any) -> Answer:
        """Send what a decision earned.

        Parameters
        ----------
        experiment, decision_id : str
        value : float
        **how
            ``event_id`` where a decision has several rewards, ``correct=True`` to replace one.
        """
        body = {"decision_id": decision_id, "value": _refuse_missing(value, "value"), **how}
        return self._ask("POST", "experiments", experiment, "/reward", body)

    def predict(self, predictor: str, x: Values) -> Answer:
        """Predict a row, and keep nothing of it.

        Returns
        -------
        dict
            With "mean", "std" and the interval from "low" to "high" of probability "level", in
            units of the target; None where nothing finite is known yet.
        """
        return self._ask("POST", "predictors", predictor, "/predict", {"x": _to_json(x)})

    def predict_batch(self, predictor: str, rows: Sequence[Values]) -> list[Answer]:
        """Predict up to 1,000 rows, each as in :meth:`predict`."""
        body = {"rows": [*map(_to_json, rows)]}
        told = self._ask("POST", "predictors", predictor, "/predict/batch", body)
        predictions: list[Answer] = told["predictions"]
        return predictions

    def learn(self, predictor: str, id: str, x: Values, y: float) -> Answer:
        """Have a row predicted, then learned, once for each id.

        Parameters
        ----------
        predictor, id : str
        x : mapping or sequence
            The features by name, or in their order.
        y : float
            The target; of yes and no 1 and 0.

        Returns
        -------
        dict
            With "status" ("new" or "duplicate"), and what was predicted before the row was learned.
        """
        return self._ask("POST", "predictors", predictor, "/learn", _name_parts((id, x, y)))

    def learn_batch(
        self, predictor: str, rows: Sequence[tuple[str, Values, float]]
    ) -> list[Answer]:
        """Have up to 1,000 rows (id, x, y) learned in one transaction: all of them, or none."""
        body = {"rows": [*map(_name_parts, rows)]}
        told: list[Answer] = self._ask("POST", "predictors", predictor, "/learn/batch", body)[
            "rows"
        ]
        return told

    def unlearn(self, predictor: str, id: str) -> Answer:
        """Take a row back."""
        return self._ask("POST", "predictors", predictor, "/unlearn", {"id": id})

    def upload(self, /, predictor: str, content: bytes, **settings: Any) -> Answer:
        """Create a predictor that goes on with a model file, as ``posterity.files.dumps`` makes it.

        Parameters
        ----------
        predictor : str
        content : bytes
        **settings
            Others of the predictor's settings, as ``level=0.5``.
        """
        what = f"/model?{urllib.parse.urlencode(settings)}"
        return self._ask("PUT", "predictors", predictor, what, content)

    def download(self, kind: str, name: str) -> bytes:
        """The model file of one of the "experiments" or "predictors"."""
        return self._send("GET", _make_path(kind, name, "/model"), None)

    def _ask(self, method: str, kind: str, name: str, what: str, body: Any) -> Answer:
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, default=_spell).encode()
        answer: Answer = json.loads(self._send(method, _make_path(kind, name, what), body))
        return answer

    def _send(self, method: str, path: str, content: bytes | None) -> bytes:
        url = f"{self.url}{path}"
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        for attempt in range(self.tries):
            request = urllib.request.Request(url, content, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    told: bytes = answer.read()
                    return told
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in (429, 503) or attempt + 1 == self.tries:
                        raise ValueError(_explain(error)) from None
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if attempt + 1 == self.tries:
                    raise
            time.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")


def _make_path(kind: str, name: str | None = None, what: str = "") -> str:
    if kind not in ("experiments", "predictors"):
        raise ValueError(f"kind is {kind!r}: give 'experiments' or 'predictors'")
    return f"/v1/{kind}" + ("" if name is None else f"/{urllib.parse.quote(name, safe='')}{what}")


def _name_parts(row: tuple[str, Values, float]) -> Answer:
    """A row to learn, as the service takes it."""
    if hasattr(row, "keys") or len(row) != 3:
        raise TypeError(f"a row to learn is {row!r}: give (id, x, y)")
    return {"id": row[0], "x": _to_json(row[1]), "y": _refuse_missing(row[2], "y")}


def _refuse_missing(number: float, name: str) -> float:
    if _is_missing(number):
        raise ValueError(f"{name} is {number}: leave the request out where there is no number yet")
    return number


def _in_thread(
    method: Callable[Concatenate[Client, _Given], _Told],
) -> Callable[Concatenate[AsyncClient, _Given], Coroutine[Any, Any, _Told]]:
    """A method of the client that is awaited: another thread waits for the answer."""

    async def run(self: AsyncClient, /, *given: _Given.args, **named: _Given.kwargs) -> _Told:
        return await asyncio.to_thread(method, self.client, *given, **named)

    functools.update_wrapper(run, method)
    return run


class AsyncClient:
    """The same for ``asyncio``: each method is that of :class:`Client`, and is awaited.

    Parameters
    ----------
    token, url, **how
        As of :class:`Client`.

    Examples
    --------
    >>> client = AsyncClient("a token")
    >>> async def show():
    ...     print((await client.decide("headlines", {"age": 0.5}))["arm"])
    """

    def __init__(self, token: str, url: str = "http://127.0.0.1:7067", **how: Any) -> None:
        self.client = Client(token, url, **how)

    put = _in_thread(Client.put)
    state = _in_thread(Client.state)
    models = _in_thread(Client.models)
    delete = _in_thread(Client.delete)
    decide = _in_thread(Client.decide)
    reward = _in_thread(Client.reward)
    predict = _in_thread(Client.predict)
    predict_batch = _in_thread(Client.predict_batch)
    learn = _in_thread(Client.learn)
    learn_batch = _in_thread(Client.learn_batch)
    unlearn = _in_thread(Client.unlearn)
    upload = _in_thread(Client.upload)
    download = _in_thread(Client.download)


def _to_json(x: Values) -> Any:
    """A row; values that are none, as NaN is, are null, as missing ones are sent."""
    if isinstance(x, str) or hasattr(x, "columns"):
        raise TypeError("a table is no row: give rows one by one, as table.to_dict('records') has")
    if not hasattr(x, "__iter__"):
        raise TypeError(f"a row is {x!r}: give its values by name, or in their order")
    if not hasattr(x, "keys"):
        return [None if _is_missing(value) else value for value in x]
    named: Any = x
    return {name: None if _is_missing(value) else value for name, value in dict(named).items()}


def _is_missing(value: Any) -> bool:
    return not isinstance(value, str) and str(value) in ("nan", "NaT", "<NA>")


def _spell(value: Any) -> Any:
    """Numbers of NumPy as those of Python; dates and times as ISO 8601 writes them."""
    for method in ("item", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError(
        f"{value!r} is a {type(value).__name__}: give a number, a text, a date, or true or false"
    )


def _explain(error: urllib.error.HTTPError) -> str:
    content = error.read().decode(errors="replace")
    try:
        problem = json.loads(content)
        field = f"{problem['field']}: " if problem.get("field") else ""
        return f"{error.code}: {field}{problem['error']}"
    except (ValueError, KeyError, TypeError):
        return f"{error.code}: {content[:200]}"

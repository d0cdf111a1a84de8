"""A client in Python, with nothing but the standard library."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from typing import Any


class Client:
    """A client of the service; failed requests are sent again, and count once.

    Parameters
    ----------
    token : str
        As ``posterity serve`` printed it.
    url : str
    timeout : float
        Seconds until a request is sent again.
    tries : int
        How often it is sent at most.

    Examples
    --------
    >>> client = Client("a token", "http://127.0.0.1:7067")
    >>> decision = client.decide("headlines", {"age": 0.5})  # doctest: +SKIP
    >>> client.reward("headlines", decision["id"], 1.0)  # doctest: +SKIP
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

    def put(self, kind: str, name: str, **settings: Any) -> Any:
        """Create one of the "experiments" or "predictors", or change its settings."""
        return self._ask("PUT", kind, name, "", settings)

    def decide(
        self, experiment: str, context: Mapping[str, float] | Sequence[float] = (), **how: Any
    ) -> Any:
        """An arm for a context."""
        how.setdefault("id", uuid.uuid4().hex)
        body = {"context": _to_json(context), **how}
        return self._ask("POST", "experiments", experiment, "/decide", body)

    def reward(self, experiment: str, decision_id: str, value: float, **how: Any) -> Any:
        """Send the reward of a decision."""
        body = {"decision_id": decision_id, "value": value, **how}
        return self._ask("POST", "experiments", experiment, "/reward", body)

    def predict(self, predictor: str, x: Mapping[str, float] | Sequence[float]) -> Any:
        """Mean, standard deviation and interval of a row."""
        return self._ask("POST", "predictors", predictor, "/predict", {"x": _to_json(x)})

    def learn(
        self, predictor: str, id: str, x: Mapping[str, float] | Sequence[float], y: float
    ) -> Any:
        """Have a row predicted, then learned, once for each id."""
        body = {"id": id, "x": _to_json(x), "y": y}
        return self._ask("POST", "predictors", predictor, "/learn", body)

    def state(self, kind: str, name: str) -> Any:
        """Return settings and state of one of the "experiments" or "predictors"."""
        return self._ask("GET", kind, name, "", None)

    def _ask(self, method: str, kind: str, name: str, what: str, body: Any) -> Any:
        url = f"{self.url}/v1/{kind}/{urllib.parse.quote(name, safe='')}{what}"
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        for attempt in range(self.tries):
            request = urllib.request.Request(url, content, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in (429, 503) or attempt + 1 == self.tries:
                        raise ValueError(_explain(error)) from None
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if attempt + 1 == self.tries:
                    raise
            time.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")


def _to_json(x: Mapping[str, float] | Sequence[float]) -> Any:
    return dict(x) if isinstance(x, Mapping) else list(x)


def _explain(error: urllib.error.HTTPError) -> str:
    content = error.read().decode(errors="replace")
    try:
        problem = json.loads(content)
        field = f"{problem['field']}: " if problem.get("field") else ""
        return f"{error.code}: {field}{problem['error']}"
    except (ValueError, KeyError, TypeError):
        return f"{error.code}: {content[:200]}"

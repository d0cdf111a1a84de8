"""A durable service: decisions and predictions over HTTP, each reward learned exactly once.

It needs ``posterity[service]``. Start it by ``posterity serve FOLDER``, and speak to it by
:class:`Client`, or by anything that speaks HTTP.
"""

from posterity.service.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]

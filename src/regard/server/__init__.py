"""Runs and Hugging Face models over HTTP: answers, attention, and the inspector's page.

Needs the extra ``serve``; from outside in: ``process`` (listen, stop), ``guard``
(who may ask, and every refusal's form), ``app`` (routes), ``service`` (one request), ``batching``
(many at once), ``work`` (the models).
"""

from regard.server.app import make_app
from regard.server.process import serve
from regard.server.requests import Limits
from regard.server.service import Service

__all__ = ["Limits", "Service", "make_app", "serve"]

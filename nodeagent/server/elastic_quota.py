"""The quota groups as Koordinator's scheduler shows them, under its own paths."""

import asyncio
from typing import Any

from aiohttp import web

from nodeagent.admission.elastic_quota.quotas import Quotas
from nodeagent.admission.elastic_quota.report import debug_body
from nodeagent.server.json_answers import json_response
from nodeagent.server.view import ServerView

PLUGIN = "/apis/v1/plugins/ElasticQuota"
_TRUE = ("1", "t", "T", "true", "True", "TRUE")


class ElasticQuotaEndpoints:
    """Answers with one group, or with all of them."""

    def __init__(self, view: ServerView) -> None:
        self._view = view

    def add_routes(self, app: web.Application) -> None:
        """Serve today's paths, and the one that older documentation names."""
        app.router.add_get(f"{PLUGIN}/quotas", self._all, allow_head=False)
        app.router.add_get(f"{PLUGIN}/quotas/{{name}}", self._one, allow_head=False)
        app.router.add_get(f"{PLUGIN}/quota/{{name}}", self._one_with_pods, allow_head=False)

    async def _all(self, request: web.Request) -> web.StreamResponse:
        quotas = await self._quotas()
        with_pods = request.query.get("includePods") in _TRUE
        tree = request.query.get("tree")
        shown = {
            group.name: _body(quotas, group.name, with_pods=with_pods)
            for group in quotas.groups()
            if tree is None or quotas.tree_of(group.name).tree_id == tree
        }
        return json_response(shown)

    async def _one(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, with_pods=request.query.get("includePods") in _TRUE)

    async def _one_with_pods(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, with_pods=True)

    async def _answer(self, request: web.Request, *, with_pods: bool) -> web.StreamResponse:
        name = request.match_info["name"]
        quotas = await self._quotas()
        if quotas.group(name) is None:
            return json_response({"message": f"cannot find quota {name}"}, status=404)
        return json_response(_body(quotas, name, with_pods=with_pods))

    async def _quotas(self) -> Quotas:
        await asyncio.sleep(0)
        return self._view.elastic_quotas()


def _body(quotas: Quotas, name: str, *, with_pods: bool) -> dict[str, Any]:
    group = quotas.group(name)
    assert group is not None
    return debug_body(group, quotas.tree_of(name).tree_id, with_pods=with_pods)

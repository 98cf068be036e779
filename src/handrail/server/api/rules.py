"""Routes of rules: list, add, remove, test a call, evaluate a new rule; and of folders: list, trust, distrust."""

import os.path
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from handrail.gate.risk import assess_call
from handrail.gate.rules.explanation import explain
from handrail.gate.rules.policy import describe_rule
from handrail.gate.rules.rule_builder import BadRule
from handrail.gate.rules.trust import FolderTrust
from handrail.server.api.approvals import (
    build_rule,
    evaluate_rule,
    get_record,
    require_absolute,
    suggest_repeated_rules,
)
from handrail.server.api.rule_models import (
    FolderBody,
    FolderView,
    ProposedBody,
    ProposedView,
    RuleBody,
    RulePlaceBody,
    RulesView,
    RuleSwitchBody,
    RuleView,
    TestBody,
    TestView,
    folder_view,
    invalid_rule_view,
    proposed_view,
    rule_view,
    suggestion_view,
    test_view,
)
from handrail.server.context import ServerContext, actor_of
from handrail.store.values import Caller, Json

COMMANDS = "execute_command"
Workspace = Annotated[str | None, Query(max_length=4096)]


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/rules")
    async def rules(workspace: Workspace = None) -> RulesView:
        held = context.gate.rules
        return RulesView(
            rules=await _rule_views(context, None if workspace is None else require_absolute(workspace)),
            suggestions=[suggestion_view(each) for each in await suggest_repeated_rules(context)],
            folders=await load_folder_views(context, held.folders()),
            default_policy=held.standing.default,
            human_in_the_loop=held.standing.human_in_the_loop,
        )

    @router.post("/rules", status_code=201)
    async def add(body: RuleBody, request: Request) -> RuleView:
        rule = build_rule(context, body)
        await context.gate.rules.add(rule, actor_of(request))
        return await _rule_view(context, rule.id)

    @router.delete("/rules/{id}", status_code=204)
    async def remove(id: str, request: Request) -> Response:
        await context.gate.rules.remove(id, actor_of(request))
        return Response(status_code=204)

    @router.patch("/rules/{id}")
    async def switch(id: str, body: RuleSwitchBody, request: Request) -> RuleView:
        await context.gate.rules.switch(id, body.enabled, actor_of(request))
        return await _rule_view(context, id)

    @router.post("/rules/{id}/move")
    async def move(id: str, body: RulePlaceBody, request: Request) -> RuleView:
        await context.gate.rules.move(id, body.before, actor_of(request))
        return await _rule_view(context, id)

    @router.post("/rules/test")
    async def test(body: TestBody) -> TestView:
        """Evaluate the rules for a hypothetical call, without side effects and without opening an approval."""
        caller = _caller(body)
        extra = None if body.rule is None else build_rule(context, body.rule, caller)
        tool, arguments = _tool_input(body)
        draft = await context.gate.drafts.draft(tool, arguments, caller)
        policy = context.gate.rules.policy(caller, extra)
        claims = draft.plan.claims
        return test_view(
            explain(policy, tool, claims, caller), claims, assess_call(claims), policy.here.trusted
        )

    @router.post("/rules/propose")
    async def propose(body: ProposedBody) -> ProposedView:
        approval = None if body.approval is None else await get_record(context, body.approval)
        try:
            rule = build_rule(context, body.rule, approval and approval.caller)
        except BadRule as problem:
            return invalid_rule_view(str(problem))
        return proposed_view(describe_rule(rule), await evaluate_rule(context, rule))

    return router


async def _rule_view(context: ServerContext, id: str) -> RuleView:
    (view,) = [view for view in await _rule_views(context, None) if view.rule.id == id]
    return view


async def _rule_views(context: ServerContext, workspace: str | None) -> list[RuleView]:
    uses = await context.records.rules.uses()
    records = {record.rule.id: record for record in await context.records.rules.all()}
    return [
        rule_view(listed, uses.get(listed.rule.id), records.get(listed.rule.id))
        for listed in context.gate.rules.listing(workspace)
    ]


def _caller(body: TestBody) -> Caller:
    """The caller of a hypothetical call."""
    workspace = None if body.workspace is None else os.path.realpath(require_absolute(body.workspace))
    return Caller(door="page", client=body.agent or "", key="a test", workspace=workspace)


def _tool_input(body: TestBody) -> tuple[str, Json]:
    if (body.command is None) == (body.tool is None):
        raise HTTPException(422, "Give a command line, or a tool with its input.")
    if body.command is not None:
        return COMMANDS, {"command": body.command}
    return body.tool or "", body.input or {}


def folder_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/folders")
    async def folders() -> list[FolderView]:
        return await load_folder_views(context, context.gate.rules.folders())

    @router.post("/folders/trust")
    async def trust(body: FolderBody, request: Request) -> FolderView:
        await context.gate.rules.trust(require_absolute(body.folder), body.config, actor_of(request))
        return await _folder_view(context, body.folder)

    @router.post("/folders/distrust")
    async def distrust(body: FolderBody, request: Request) -> FolderView:
        await context.gate.rules.distrust(require_absolute(body.folder), actor_of(request))
        return await _folder_view(context, body.folder)

    return router


async def load_folder_views(context: ServerContext, folders: list[FolderTrust]) -> list[FolderView]:
    trusted = {record.folder: record for record in await context.records.rules.folders()}
    return [folder_view(each, trusted.get(each.folder)) for each in folders]


async def _folder_view(context: ServerContext, folder: str) -> FolderView:
    (view,) = await load_folder_views(context, [context.gate.rules.folder(folder)])
    return view

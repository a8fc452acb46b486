"""What `plan` found, as a document or as the structure of its JSON, whatever it is about: a run or a server."""

from __future__ import annotations

from oomdoctor.case.serving import AnyPlans, is_of_server
from oomdoctor.knowledge.pack import Pack
from oomdoctor.report.document import Document
from oomdoctor.report.memory import plan, serving_plan
from oomdoctor.report.wire.plan import convert_plans
from oomdoctor.report.wire.plan_v1 import PlansV1
from oomdoctor.report.wire.serving import convert_served_plans
from oomdoctor.report.wording.wording import Wording


def plan_document(plans: AnyPlans, pack: Pack, wording: Wording, version: str) -> Document:
    """Return plans for people."""
    assumptions = plans.now.assumptions
    if is_of_server(plans):
        return serving_plan.compose(plans, assumptions, wording, version)
    return plan.compose(plans, assumptions, pack, wording, version)


def convert_found_plans(plans: AnyPlans, wording: Wording) -> PlansV1:
    """Return plans for programs."""
    assumptions = plans.now.assumptions
    return convert_served_plans(plans, assumptions, wording) if is_of_server(plans) else convert_plans(plans, assumptions, wording)

"""The table of the HPA's behaviour, whole."""

from __future__ import annotations

from tests.adapter.hpa.cases.bounds import BOUND_CASES
from tests.adapter.hpa.cases.external import EXTERNAL_CASES
from tests.adapter.hpa.cases.limits import LIMIT_CASES
from tests.adapter.hpa.cases.objects import OBJECT_CASES
from tests.adapter.hpa.cases.pods import PODS_CASES
from tests.adapter.hpa.cases.resources import RESOURCE_CASES
from tests.adapter.hpa.cases.several import SEVERAL_CASES

CASES = (
    *PODS_CASES,
    *LIMIT_CASES,
    *SEVERAL_CASES,
    *OBJECT_CASES,
    *EXTERNAL_CASES,
    *RESOURCE_CASES,
    *BOUND_CASES,
)

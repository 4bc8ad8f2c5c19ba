"""The real API server accepts and refuses the HPAs that adapter.hpa does."""

from __future__ import annotations

import pytest

from tests.adapter.hpa.validity import JUDGED, Judged
from tests.e2e.cluster import HPAS, RefusedError
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.parametrize("case", JUDGED.values(), ids=JUDGED)
def test_an_hpa_that_is_not_valid_is_refused(stage: Stage, case: Judged) -> None:
    path = f"{HPAS.format(ns='default')}?dryRun=All"
    refused = ""
    try:
        stage.plane.admin.request("POST", path, case.manifest)
    except RefusedError as error:
        refused = error.text
    assert bool(refused) == (bool(case.words) and not case.stored), refused

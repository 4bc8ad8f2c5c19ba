"""Definitions of other projects' kinds that the chart uses, as those projects ship them.

The API server validates rendered objects with the real schemas, without the controllers.
"""

from __future__ import annotations

from typing import NamedTuple

import yaml

from tests.e2e import modules
from tests.e2e.cluster import Cluster, Object, condition
from tests.e2e.serverside import apply

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Definitions(NamedTuple):
    """Some of a project's CRDs."""

    module: modules.Module
    folder: str
    """Where in it."""
    names: tuple[str, ...]


MONITORING = Definitions(
    modules.PROMETHEUS_OPERATOR,
    "example/prometheus-operator-crd",
    ("monitoring.coreos.com_servicemonitors", "monitoring.coreos.com_prometheusrules"),
)
CERT_MANAGER = Definitions(
    modules.CERT_MANAGER,
    "deploy/crds",
    ("cert-manager.io_certificates", "cert-manager.io_issuers"),
)
KEDA = Definitions(
    modules.KEDA,
    "config/crd/bases",
    (
        "keda.sh_scaledobjects",
        "keda.sh_triggerauthentications",
        "keda.sh_clustertriggerauthentications",
    ),
)
KARPENTER = Definitions(
    modules.KARPENTER,
    "pkg/apis/crds",
    ("karpenter.sh_nodepools", "autoscaling.x-k8s.io_capacitybuffers"),
)


def read(which: Definitions) -> list[Object]:
    """Return the CustomResourceDefinitions.

    Raises:
        ProgramMissingError: Go or the module is not available.
    """
    folder = modules.folder(which.module) / which.folder
    return [yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in which.names]


def install(admin: Cluster, *wanted: Definitions) -> None:
    """Define the missing kinds, and wait until the API server serves them.

    They are kept: after a removal, the garbage collector would wait for the missing kind.
    """
    made = [apply(admin, obj, "") for which in wanted for obj in read(which)]
    for obj in made:
        name = obj["metadata"]["name"]
        admin.wait(f"{_PATH}/{name}", _established, f"{name} is established")
    for obj in made:
        spec = obj["spec"]
        path = f"/apis/{spec['group']}/{_stored(obj)}/{spec['names']['plural']}"
        admin.wait(path, bool, f"{path} is served")


def _established(obj: Object) -> bool:
    return condition(obj, "Established")[0] == "True"


def _stored(obj: Object) -> str:
    (version,) = (row["name"] for row in obj["spec"]["versions"] if row["storage"])
    return str(version)

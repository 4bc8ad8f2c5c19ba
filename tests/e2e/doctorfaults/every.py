"""Every fault: importing a module registers its faults."""

from tests.e2e.doctorfaults import (  # noqa: F401 - imported for what they register
    autoscaling,
    cluster,
    exporters,
    hpas,
    installation,
    nodes,
    others,
    pages,
    scaledobjects,
    scaledworkloads,
    servers,
)
from tests.e2e.doctorfaults.register import FAULTS

__all__ = ["FAULTS"]

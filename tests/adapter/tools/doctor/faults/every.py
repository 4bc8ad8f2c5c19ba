"""Every fault: importing a module registers its faults."""

from tests.adapter.tools.doctor.faults import (  # noqa: F401 - imported for what they register
    autoscaling,
    cluster,
    exporters,
    hpapods,
    hpas,
    installation,
    nodes,
    pages,
    servers,
    stores,
)
from tests.adapter.tools.doctor.faults.others import FAULTS as OF_OTHERS
from tests.adapter.tools.doctor.faults.register import FAULTS as REGISTERED

FAULTS = {
    identity: sorted(REGISTERED[identity], key=lambda fault: fault.__module__)
    for identity in sorted(REGISTERED)
}
"""In the order of the checks, in every test process; modules are imported in different orders."""

__all__ = ["FAULTS", "OF_OTHERS"]

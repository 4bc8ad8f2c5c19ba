"""The checks, one module per section. Importing this package registers all of them."""

from adapter.doctor.checks import (
    cluster,
    exporters,
    hpas,
    hpatargets,
    nodepool,
    ours,
    pages,
    prometheus,
    servers,
    sharing,
)

__all__ = [
    "cluster",
    "exporters",
    "hpas",
    "hpatargets",
    "nodepool",
    "ours",
    "pages",
    "prometheus",
    "servers",
    "sharing",
]

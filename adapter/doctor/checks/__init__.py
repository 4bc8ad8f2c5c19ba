"""The checks, by section. Importing this package registers all of them."""

from adapter.doctor.checks import (
    apiservices,
    cluster,
    exporterconfig,
    exporters,
    hpanumbers,
    hpas,
    hpatargets,
    nodepool,
    nodes,
    others,
    ours,
    pages,
    prometheus,
    selfmetrics,
    servers,
    sharing,
)

__all__ = [
    "apiservices",
    "cluster",
    "exporterconfig",
    "exporters",
    "hpanumbers",
    "hpas",
    "hpatargets",
    "nodepool",
    "nodes",
    "others",
    "ours",
    "pages",
    "prometheus",
    "selfmetrics",
    "servers",
    "sharing",
]

"""Signs of ScaledObjects: what KEDA says of one that is not valid, and of scalers.

``controllers/keda/scaledobject_controller.go`` and ``pkg/common/message`` of kedacore/keda have the
words about ScaledObjects; those about scalers are of gRPC and of Go's TLS.
"""

from __future__ import annotations

from typing import Final

from adapter.answers.causes.signs import Sign

PORT: Final = 6000
"""The port of the chart's Service for KEDA, whichever port the pods listen on."""
NO_TARGET: Final = Sign(
    ("target resource", "failed to get target", "not found"),
    "create the workload, or correct spec.scaleTargetRef of the ScaledObject: it must be in "
    "the same namespace",
)
UNSCALED: Final = Sign(
    ("error activating scaletarget", "error deactivating scaletarget", "error setting scaletarget"),
    "let keda-operator change the size of the target: see its rights to update the subresource "
    "scale, and webhooks that refuse the change",
)
"""``pkg/scaling/executor/scale_scaledobjects.go``, from KEDA 2.21 on."""
CHECKS: Final = (
    Sign(
        ("/scale subresource",),
        "scale a Deployment, a StatefulSet, or a kind that has the subresource scale",
    ),
    NO_TARGET,
    UNSCALED,
    Sign(
        ("correct scaletargetref", "scaletargetref.name is missing"),
        "correct spec.scaleTargetRef: name, kind and apiVersion of a workload of this namespace",
    ),
    Sign(
        ("already managed by",),
        "keep one ScaledObject or HPA for each workload: put its triggers into one, and delete the "
        "other",
    ),
    Sign(
        ("correct triggers specification", "unique", "triggers"),
        "correct spec.triggers: each needs a type and its metadata, and names must differ",
    ),
    Sign(
        ("must be positive",),
        "give each trigger a target above 0, such as threshold of a prometheus trigger, or target "
        "of the adapter's",
    ),
    Sign(
        ("idle/min/max", "idlereplicacount", "minreplicacount"),
        "let idleReplicaCount be below minReplicaCount, and that not above maxReplicaCount",
    ),
)
"""What KEDA says of a ScaledObject that is not valid, or of its target, and what to do."""
SCALERS: Final = (
    Sign(
        ("do connect handshake",),
        "an HTTP proxy of keda-operator answers in the scaler's place: add .svc and the addresses "
        "of Services to NO_PROXY of the keda-operator Deployment",
    ),
    Sign(
        ("keda-operator", ":9666"),
        "KEDA's metrics server does not reach keda-operator: see whether it runs, and its log",
    ),
    Sign(
        ("no such host", "zero addresses", "server misbehaving"),
        f"correct the host of the address: SERVICE.NAMESPACE:{PORT} for the adapter",
    ),
    Sign(
        ("first record does not look like a tls", "handshake failure"),
        'the trigger speaks TLS and the scaler does not: set enableTLS to "false", or turn on '
        "keda.tls of the adapter",
    ),
    Sign(
        ("server preface", "frame too large", "malformed http", "eof"),
        'the scaler speaks TLS and the trigger does not: set enableTLS to "true", and caCert by a '
        "TriggerAuthentication",
    ),
    Sign(
        ("x509", "certificate"),
        "give the trigger the CA of the scaler's certificate (caCert of a TriggerAuthentication)",
    ),
    Sign(
        ("unimplemented", "unknown service"),
        f"the port is not that of a scaler: KEDA's port of the adapter is {PORT}",
    ),
    Sign(
        ("connection refused",),
        f"see whether the scaler's pods run and serve KEDA (keda.enabled), and correct the port: "
        f"KEDA's port of the adapter is {PORT}",
    ),
    Sign(
        ("deadline exceeded", "timeout", "timed out", "no route to host"),
        "admit the pods of KEDA to the scaler's port: a NetworkPolicy or a firewall drops their "
        "packets",
    ),
)
"""What KEDA says of a scaler that does not answer, and what to do."""

"""Signs of pods without a node: what the scheduler, node autoscalers and volume claims say.

``pkg/scheduler/framework/plugins`` of Kubernetes has the scheduler's reasons; Karpenter's are those
of aws/karpenter-provider-aws issues 5527 and 6884.
"""

from __future__ import annotations

from typing import Final

from adapter.answers.causes.signs import Sign

LABELS: Final = (
    Sign(
        ("pod's node affinity", "node affinity/selector", "node selector"),
        "correct nodeSelector or nodeAffinity in the pod template, or add nodes with these labels",
        template=True,
    ),
    Sign(
        ("untolerated taint", "that the pod did"),
        "add a toleration to the pod template, if the pods may run on these nodes",
        template=True,
    ),
)
"""Reasons that nodes of other kinds give in every cluster."""

BACKOFF: Final = Sign(
    ("in backoff after failed scale-up",),
    "see why the last scale-up failed, in the node autoscaler's log: a quota of the cloud "
    "account, or no such machines in the zone",
)
"""The node autoscaler waits, because the cloud refused a scale-up; why stands elsewhere."""

AMOUNTS: Final = Sign(
    ("insufficient memory", "insufficient cpu", "insufficient ephemeral-storage"),
    "lower the requests of the pod template to what a node has free, or add larger nodes",
    template=True,
)
"""Who holds them is in :mod:`adapter.answers.causes.amounts`."""

NEW_NODE: Final = Sign(
    ("fit if a new node is added",),
    "let a node group of the autoscaler have what the pods ask for: one machine has to offer all "
    "of it (a share of a GPU counts as the device plugin names it). Of a group without nodes, the "
    "autoscaler knows GPUs and other resources by the tags of its template "
    "(k8s.io/cluster-autoscaler/node-template/resources/NAME)",
)
"""kubernetes/autoscaler issues 929, 3869 and 8129; awslabs/aws-virtual-gpu-device-plugin issue 20.
"""
STARTING: Final = Sign(
    ("-not-ready:", "/not-ready:", "uninitialized:", "unregistered:"),
    "the program that sets this taint removes it once the node is ready: see its pod on the node, "
    "such as the network plugin, the storage driver or the cloud's controller",
)
"""Taints of a new node, as the scheduler's message has them; nobody tolerates them for a workload.
"""
VOLUME_ZONE: Final = Sign(
    ("volume node affinity conflict", "no available volume zone", "volume zone"),
    "add GPU nodes in the zone or on the node that the volume names (Node Affinity); or create a "
    "claim of another name, with a storage class of volumeBindingMode WaitForFirstConsumer that "
    "makes volumes where pods run, copy the data, and name it in the pod template: a volume does "
    "not move, and a claim cannot be changed",
)
PLACES: Final = (
    Sign(
        ("max node group size reached", "max limit reached", "max cluster"),
        "raise the maximum size of the node group in the node autoscaler, or lower maxReplicas",
    ),
    Sign(
        ("exceed limits for nodepool", "exceeded limit", "would exceed limit"),
        "raise spec.limits of the NodePool, or lower maxReplicas",
    ),
    Sign(
        (
            "insufficient capacity",
            "insufficientinstancecapacity",
            "insufficienthostcapacity",
            "unfulfillablecapacity",
            "out of capacity",
            "out of resources",
            "stockout",
            "resource_pool_exhausted",
            "allocationfailed",
            "allocation failed",
            "overconstrained",
            "skunotavailable",
        ),
        "the cloud has none of these machines now: allow other instance types, zones or capacity "
        "types in the NodePool or node group, or reserve such machines",
    ),
    Sign(
        (
            "quota exceeded",
            "quotaexceeded",
            "quota_exceeded",
            "vcpulimitexceeded",
            "maxspotinstancecountexceeded",
        ),
        "raise the quota of the cloud account for these machines",
    ),
    BACKOFF,
    Sign(
        ("nodeclassnotready", "nodeclass is not ready", "nodeclass not ready"),
        "see the conditions of the NodeClass that the NodePool names: its image, subnets, security "
        "groups or role were not found",
    ),
    Sign(
        ("has not joined the cluster",),
        "see the log of the machine: it runs, and its kubelet does not reach or is not admitted by "
        "the API server (bootstrap, role, network)",
    ),
    Sign(
        ("is not initialized", "resourcenotregistered", "startuptaintsexist"),
        "see the pods of the driver and the device plugin on the new node: Karpenter waits for its "
        "GPUs, and for programs that remove startup taints",
    ),
    Sign(
        ("is not launched",),
        "see the message of the cloud: permissions, image or settings of the NodeClass",
    ),
    Sign(
        ("no instance type", "no nodepool", "incompatible with nodepool"),
        "let the requests, selectors and tolerations of the pod template fit a NodePool, or add a "
        "NodePool with GPU instances whose requirements, taints and limits admit these pods",
    ),
    Sign(
        ("pod group is not ready", "minavailable", "minmember", "gang"),
        "add GPUs for the whole group, or make the group smaller (minMember): a gang scheduler "
        "starts all of its pods or none",
    ),
    Sign(
        ("cardinsufficient", "cardnotfound", "nodeunfitpod", "exclusivedeviceallocate"),
        "lower what the pod template asks of a GPU (nvidia.com/gpumem, nvidia.com/gpucores), or "
        "add GPUs: no GPU has so much left (HAMi)",
        template=True,
    ),
    Sign(
        ("topology spread constraints",),
        "add GPUs in the zone that has fewest of these pods, or set whenUnsatisfiable of the "
        "topologySpreadConstraints to ScheduleAnyway in the pod template",
        template=True,
    ),
    Sign(
        ("anti-affinity rules",),
        "add nodes, or make the podAntiAffinity a preferred one in the pod template "
        "(preferredDuringSchedulingIgnoredDuringExecution), or lower maxReplicas",
        template=True,
    ),
    Sign(
        ("pod affinity rules",),
        "correct podAffinity in the pod template, or start the pods that it asks for: no node runs "
        "one with these labels",
        template=True,
    ),
    VOLUME_ZONE,
    NEW_NODE,
    STARTING,
    Sign(
        ("max volume count",),
        "add nodes, or use fewer volumes a node: no more can be attached to these",
    ),
    Sign(
        ("free ports",),
        "remove hostPort or hostNetwork from the pod template, or add nodes: one pod a node has "
        "the port",
        template=True,
    ),
    Sign(
        ("too many pods",),
        "add nodes, move pods away, or raise maxPods of the kubelets: the nodes run as many pods "
        "as they may",
    ),
    Sign(
        ("insufficient hugepages",),
        "reserve huge pages of this size on the GPU nodes (vm.nr_hugepages, and a restart of the "
        "kubelet), or remove them from the requests of the pod template",
        template=True,
    ),
    AMOUNTS,
    *LABELS,
)
"""What the scheduler, or a node autoscaler, says of nodes."""

CLAIMS: Final = (
    Sign(
        ("readwriteoncepod",),
        "use a claim that many pods can mount (ReadWriteMany), or a claim for each pod: one pod of "
        "the cluster may use this one",
    ),
    Sign(
        ("bound to non-existent", "being deleted"),
        "create the claim again: its volume is gone, or it is being deleted",
    ),
    Sign(
        ("storageclass", "storage class"),
        "create the storage class that the claim names, or create the claim again with one that "
        "exists (kubectl get storageclass)",
    ),
    Sign(
        ("no persistent volumes available", "find available persistent volumes"),
        "create a PersistentVolume that fits the claim, or create the claim again with a storage "
        "class that makes volumes",
    ),
    Sign(
        ("not found",),
        "create the PersistentVolumeClaim, or correct claimName in the pod template",
    ),
    Sign(
        ("waiting for a volume to be created", "external provisioner"),
        "see the pods and the log of the CSI driver's controller: it makes no volume",
    ),
)
"""What the scheduler, and the events of a claim, say of a volume."""

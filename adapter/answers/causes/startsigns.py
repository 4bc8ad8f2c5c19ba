"""Signs of containers that do not start: images, volumes, sandboxes, runtimes.

The words are those of containerd and CRI-O, of NVIDIA/nvidia-container-toolkit (issues 1239 and
1537: CDI), and of the kubelet (``pkg/kubelet/images``, ``pkg/kubelet/kuberuntime``,
``pkg/volume``).
"""

from __future__ import annotations

from typing import Final

from adapter.answers.causes.signs import (
    CREDENTIALS,
    DRIVER_MISMATCH,
    NO_PROGRAM,
    PLATFORM,
    SPACE,
    Sign,
)

_DRIVER: Final = (
    *("nvidia-container-cli", "nvml", "libnvidia-ml", "driver not loaded", "nvidia driver"),
    "could not select device driver",
)

PULLS: Final = (
    PLATFORM,
    Sign(
        ("may require authorization", "may require 'docker login'"),
        "correct the image's name, or, if the registry is private, give the pods a Secret for it "
        "in their own namespace (imagePullSecrets)",
        template=True,
    ),
    Sign(
        ("toomanyrequests", "rate limit", "429 too many"),
        "the registry limits how often anonymous users pull: sign in with a Secret "
        "(imagePullSecrets), or pull from a mirror or a registry of your own",
    ),
    CREDENTIALS,
    Sign(
        ("invalid reference format", "parse image", "failed to apply default image tag"),
        "correct the image's name: it must be REGISTRY/PATH:TAG in lower case",
        template=True,
    ),
    Sign(
        ("is not present with pull policy of never", "errimageneverpull"),
        "set imagePullPolicy to IfNotPresent, or load the image on every node that may run the pod",
        template=True,
    ),
    Sign(
        ("short name", "short-name"),
        "write the image with its registry, such as docker.io/PATH:TAG: the node takes no short "
        "names that several registries may have",
        template=True,
    ),
    Sign(
        ("signature", "policy requirement"),
        "sign the image as the node's policy asks, or use one that is signed",
    ),
    Sign(
        ("manifest unknown", "notfound", "not found", "does not exist", "name unknown"),
        "correct the image's name or tag",
        template=True,
    ),
    SPACE,
    Sign(
        ("server gave http response to https client",),
        "the registry speaks plain HTTP: give it a certificate, or list it as insecure in the "
        "container runtime of the nodes",
    ),
    Sign(
        ("x509", "certificate"),
        "let the nodes trust the CA of the registry's certificate, or renew the certificate",
    ),
    Sign(
        ("no such host", "server misbehaving"),
        "correct the registry's host in the image's name, or the DNS of the node",
        template=True,
    ),
    Sign(
        (
            *("timeout", "timed out", "refused", "unreachable", "deadline exceeded", "reset by"),
            "unexpected eof",
        ),
        "make the registry reachable from the node: firewall, proxy of the container runtime; for "
        "a large image, use a registry near the cluster",
    ),
)
"""What a registry, or the container runtime that asks it, says of an image."""

STARTS: Final = (
    Sign(
        ("multi-attach",),
        "use a claim that many nodes can mount (ReadWriteMany), or a volume for each pod; one node "
        "at a time has this volume",
    ),
    Sign(
        ("no runtime for", "runtimehandler", "runtime handler", "unknown runtime"),
        "let the GPU operator, or the container toolkit, configure this runtime on the node, and "
        "restart the node's container runtime; or remove runtimeClassName from the pod template",
    ),
    Sign(
        ("cdi",),
        "let the container toolkit write the node's CDI specification again: restart its pod on "
        "the node, or run nvidia-ctk cdi generate there; and let deviceListStrategy of the device "
        "plugin name devices as that specification does (cdi.enabled of the GPU operator)",
    ),
    Sign(
        ("unsatisfied condition: cuda", "requirement error"),
        "update the driver of the node, or use an image of an older CUDA: the image needs a newer "
        "driver (NVIDIA_REQUIRE_CUDA)",
    ),
    DRIVER_MISMATCH,
    Sign(
        _DRIVER,
        "repair the driver of the node: see the driver's and the container toolkit's pods on it, "
        "and nvidia-smi there; until then, cordon the node",
    ),
    Sign(
        ("oom-kill", "oom kill", "memory limit too low", "cannot allocate memory"),
        "raise limits.memory of the container: it is too low to start in",
        template=True,
    ),
    PLATFORM,
    NO_PROGRAM,
    Sign(
        ("runasnonroot", "non-numeric user", "run as root"),
        "set securityContext.runAsUser to a number that is not 0, or use an image that does not "
        "run as root",
        template=True,
    ),
    Sign(
        ("permission denied", "operation not permitted"),
        "correct securityContext of the pod template (runAsUser, fsGroup), or the rights of the "
        "file that the message names",
        template=True,
    ),
    SPACE,
    Sign(
        ("non-existent config key", "find key"),
        "add the key to the Secret or ConfigMap, or correct the key in the pod template",
        template=True,
    ),
    Sign(
        ("list of registered csi drivers",),
        "install the CSI driver that the message names, or see its pod on the node",
    ),
    Sign(
        ("hostpath type check failed", "path does not exist"),
        "create the directory on every node that may run the pod, or use a volume of another type",
    ),
    Sign(
        ("mount.nfs", "exit status 32", "connection timed out", "access denied by server"),
        "see whether the node reaches the file server, and may mount the path that is named",
    ),
    Sign(
        ("failed to assign an ip", "no available ip", "no ip addresses", "ip address pool"),
        "the network plugin has no free address for the pod: enlarge the subnet or the address "
        "pool, or run fewer pods on the node",
    ),
    Sign(
        ("cni", "network"),
        "see the pods of the network plugin on the node",
    ),
    Sign(
        ("dra plugin", "nodeprepareresources", "prepare dynamic resources", "dra driver"),
        "see the log of the DRA driver's plugin on the node",
    ),
    Sign(
        ("poststarthook", "poststart"),
        "correct lifecycle.postStart of the container: it fails, so the container is killed",
        template=True,
    ),
    Sign(
        ("not found", "references non-existent"),
        "create what the message names in the pods' namespace, or correct the name in the pod "
        "template",
    ),
)
"""What the kubelet or the container runtime says of a container that does not start."""

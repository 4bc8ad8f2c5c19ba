"""Signs of servers that end: what PyTorch, CUDA, NCCL, vLLM and others say at their end."""

from __future__ import annotations

from typing import Final

from adapter.answers.causes.signs import DRIVER_MISMATCH, NO_PROGRAM, PLATFORM, SPACE, Sign

CRASHES: Final = (
    PLATFORM,
    Sign(
        (
            *("cuda out of memory", "outofmemoryerror", "cublas_status_alloc_failed"),
            *("no available memory for the cache", "less than desired gpu memory utilization"),
            "hip out of memory",
        ),
        "the memory of the GPU is too small: use a smaller or quantized model, a shorter context "
        "(--max-model-len), more GPUs a pod (--tensor-parallel-size), or see what else uses the "
        "GPU",
        template=True,
    ),
    Sign(
        ("larger than the maximum number of tokens", "kv cache is larger than"),
        "lower --max-model-len of the server, or raise --gpu-memory-utilization",
        template=True,
    ),
    Sign(
        (
            *("driver version is insufficient", "forward compatibility was attempted"),
            "unsupported display driver",
        ),
        "update the driver of the node, or use an image of an older CUDA",
    ),
    DRIVER_MISMATCH,
    Sign(
        ("system not yet initialized", "error 802", "fabric"),
        "start the fabric manager of the node: GPUs with NVSwitch need it, of the driver's version",
    ),
    Sign(
        ("invalid device ordinal", "tensor parallel size", "tensor_parallel_size", "world size"),
        "let the server use as many GPUs as the container requests: --tensor-parallel-size times "
        "--pipeline-parallel-size",
        template=True,
    ),
    Sign(
        ("only supported on gpus with compute capability",),
        "set the number format of the server to one that the GPU has, such as --dtype half, or "
        "keep the pods on newer GPUs",
        template=True,
    ),
    Sign(
        ("engine plan file", "incompatible device"),
        "build the TensorRT engine again for this model of GPU, or keep the pods on the model that "
        "it was built for",
        template=True,
    ),
    Sign(
        ("no kernel image is available",),
        "use an image that is built for this model of GPU, or keep the pods on another model",
        template=True,
    ),
    Sign(
        (
            *("found no nvidia driver", "no cuda-capable device", "no nvidia gpu", "libcuda.so"),
            *("nvml shared library not found", "failed to infer device type", "no cuda gpus"),
            *("cuda driver initialization failed", "no hip gpus"),
        ),
        "the container sees no GPU: let it request one (limits, such as nvidia.com/gpu: 1), and "
        "let the pods use the GPU's runtime: runtimeClassName nvidia, or nvidia as default runtime "
        "of the node",
        template=True,
    ),
    Sign(
        (
            *("uncorrectable ecc", "gpu is lost", "fallen off the bus", "unspecified launch"),
            *("hardware error", "xid", "device-side assert", "cuda error", "hip error"),
        ),
        "see the Xid errors of the node's kernel log; if the GPU is broken, cordon the node and "
        "delete the pod, so that it gets another GPU",
    ),
    Sign(
        ("dev/shm", "bus error", "shared memory"),
        "mount an emptyDir of medium Memory at /dev/shm: by default a container has 64 MiB of "
        "shared memory, which servers with several GPUs exhaust",
        template=True,
    ),
    Sign(
        ("nccl",),
        "see NCCL_DEBUG=INFO in the log: servers with several GPUs need an emptyDir of medium "
        "Memory at /dev/shm, and those of several nodes a network that NCCL finds "
        "(NCCL_SOCKET_IFNAME, RDMA devices)",
        template=True,
    ),
    Sign(
        ("too many open files", "start new thread", "resource temporarily unavailable"),
        "raise the limits of open files or processes, which the container runtime or podPidsLimit "
        "of the kubelet sets",
    ),
    Sign(
        ("gated repo", "gatedrepo", "401 client error", "403 client error", "invalid user token"),
        "give the pods a token that may read the model (a Secret with HF_TOKEN), and accept the "
        "model's licence with its account",
        template=True,
    ),
    Sign(
        ("repository not found", "not a valid model identifier", "does not appear to have a file"),
        "correct the name or path of the model in the arguments of the server",
        template=True,
    ),
    SPACE,
    Sign(
        (
            *("name resolution", "name or service not known", "max retries exceeded"),
            *("connection refused", "network is unreachable", "timed out", "no such host"),
        ),
        "let the pods reach what the message names: DNS, a proxy, an egress NetworkPolicy, or a "
        "mesh sidecar that starts later than the server",
    ),
    Sign(
        ("address already in use",),
        "change the port of the server, or remove hostNetwork from the pod template",
        template=True,
    ),
    Sign(
        ("permission denied", "read-only file system"),
        "correct securityContext of the pod template (runAsUser, fsGroup), or give the server a "
        "volume that it may write to",
        template=True,
    ),
    Sign(
        ("unrecognized arguments", "error: argument", "unknown flag", "flag provided but not"),
        "correct args of the container: this version of the server does not take them",
        template=True,
    ),
    NO_PROGRAM,
)
"""What a server says at its end."""

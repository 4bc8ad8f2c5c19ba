# One image for every command. The build needs only this folder:
#
#   docker build -t gpu-metrics-adapter .
#
# ARG PYTHON below is the only place that names the base image. It is a tag, so a rebuild picks up
# Debian's and Python's fixes. To pin the base image, look up its digest and pass the complete
# reference:
#
#   docker buildx imagetools inspect python:3.13-slim-trixie --format '{{.Manifest.Digest}}'
#   docker build --build-arg PYTHON=python:3.13-slim-trixie@sha256:DIGEST .
#
# The only other argument that a build may need is PIP_INDEX_URL; docs/image.md describes it. No RUN
# mounts anything, so builders without BuildKit also work.
ARG PYTHON=python:3.13-slim-trixie

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
ARG PIP_INDEX_URL

# Both environments contain only wheels whose hashes are in a lock file. The environment in /tools
# builds the wheel and is not part of the image.
COPY requirements-image.lock ./
RUN python -m venv /tools \
 && /tools/bin/pip install --quiet --no-compile --require-hashes --only-binary :all: \
      -r requirements-image.lock
COPY requirements.lock ./
RUN python -m venv --without-pip /opt/gpu-metrics-adapter \
 && /tools/bin/pip --python /opt/gpu-metrics-adapter install --quiet --no-compile \
      --require-hashes --only-binary :all: -r requirements.lock

# From here on the build downloads nothing: the locked backend builds the wheel.
COPY pyproject.toml README.md LICENSE ./
COPY image image
COPY apiservice apiservice
COPY adapter adapter
# A fixed time makes the wheel, the bill of materials and the installed files identical in every
# build of the same sources. A release passes the time of its commit. The commands of the libraries
# are deleted, because only their modules are used.
ARG SOURCE_DATE_EPOCH=1577836800
RUN /tools/bin/pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /dist . \
 && /tools/bin/pip --python /opt/gpu-metrics-adapter install --quiet --no-compile \
      --no-index --no-deps --find-links /dist gpu-metrics-adapter \
 && /tools/bin/cyclonedx-py environment --output-reproducible --gather-license-texts \
      --output-file /opt/gpu-metrics-adapter/sbom.cdx.json /opt/gpu-metrics-adapter \
 && find /opt/gpu-metrics-adapter/bin -type f ! -name gpu-metrics-adapter -delete \
 && PYTHONHASHSEED=0 /opt/gpu-metrics-adapter/bin/python -B image/bytecode.py /bytecode \
 && find /opt/gpu-metrics-adapter /bytecode \
      -exec touch --no-dereference --date @"$SOURCE_DATE_EPOCH" {} +

FROM ${PYTHON}
# The image needs no pip and no setuid programs.
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/site-packages/pip* \
      /usr/local/lib/python3*/ensurepip \
 && find / -xdev -type f -perm /6000 -exec chmod ug-s {} + \
 && echo 'nonroot:x:65532:65532::/nonexistent:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'nonroot:x:65532:' >> /etc/group
COPY --from=build /bytecode/ /
COPY --from=build /opt/gpu-metrics-adapter /opt/gpu-metrics-adapter
ENV PATH=/opt/gpu-metrics-adapter/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_STATE_HOME=/tmp
LABEL org.opencontainers.image.title="gpu-metrics-adapter" \
      org.opencontainers.image.description="Scale Kubernetes workloads on the real load of their GPUs" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# A number, so that the kubelet can check runAsNonRoot. The root file system may be read-only: the
# processes write only to server.cert_dir, below /tmp.
USER 65532:65532
# serve: HTTPS, KEDA's gRPC, the kubelet's probes. nodepool: HTTP.
EXPOSE 6443
EXPOSE 6000
EXPOSE 8080
EXPOSE 8081
STOPSIGNAL SIGTERM
ENTRYPOINT ["gpu-metrics-adapter"]
CMD ["serve"]

# One image for every command. Nothing but this folder is needed:
#
#   docker build -t gpu-metrics-adapter .
#
# The base image is named in one place, by tag: a rebuild takes up Debian's and Python's fixes.
# To hold on to one, look its digest up and give the whole reference:
#
#   docker buildx imagetools inspect python:3.13-slim-trixie --format '{{.Manifest.Digest}}'
#   docker build --build-arg PYTHON=python:3.13-slim-trixie@sha256:DIGEST .
#
# PIP_INDEX_URL is the one other argument that some need; docs/image.md tells the rest. Builders
# without BuildKit do too, as registries have them: no RUN mounts anything.
ARG PYTHON=python:3.13-slim-trixie

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
ARG PIP_INDEX_URL

# Both environments hold only wheels whose hashes are in a lock. The one in /tools builds, and
# stays behind with this stage.
COPY requirements-image.lock ./
RUN python -m venv /tools \
 && /tools/bin/pip install --quiet --no-compile --require-hashes --only-binary :all: \
      -r requirements-image.lock
COPY requirements.lock ./
RUN python -m venv --without-pip /opt/gpu-metrics-adapter \
 && /tools/bin/pip --python /opt/gpu-metrics-adapter install --quiet --no-compile \
      --require-hashes --only-binary :all: -r requirements.lock

# From here on nothing is fetched: the wheel is built by the backend locked above.
COPY pyproject.toml README.md LICENSE ./
COPY image image
COPY apiservice apiservice
COPY adapter adapter
# Any one time makes the wheel, the bill of materials and the installed files the same bytes in
# every build of the same sources. A release gives its commit's. Of the libraries only the
# modules are used, so their commands go.
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
# Nothing installs packages or changes its user here.
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/site-packages/pip* \
      /usr/local/lib/python3*/ensurepip \
 && find / -xdev -type f -perm /6000 -exec chmod ug-s {} + \
 && echo 'nonroot:x:65532:65532::/nonexistent:/usr/sbin/nologin' >> /etc/passwd \
 && echo 'nonroot:x:65532:' >> /etc/group
COPY --from=build /bytecode/ /
COPY --from=build /opt/gpu-metrics-adapter /opt/gpu-metrics-adapter
ENV PATH=/opt/gpu-metrics-adapter/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.title="gpu-metrics-adapter" \
      org.opencontainers.image.description="Scale Kubernetes workloads on what their GPUs are really doing" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# A number, so that runAsNonRoot can be checked. The root file system may be read-only: only
# server.cert_dir, below /tmp, is ever written.
USER 65532:65532
# serve: HTTPS, KEDA's gRPC, the kubelet's probes; nodepool.
EXPOSE 6443
EXPOSE 6000
EXPOSE 8080
EXPOSE 8081
STOPSIGNAL SIGTERM
# For Docker and Podman; a kubelet goes by the chart's probes.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["gpu-metrics-adapter", "healthy"]
ENTRYPOINT ["gpu-metrics-adapter"]
CMD ["serve"]

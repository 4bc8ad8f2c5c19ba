# Two stages: the wheel and its locked dependencies are installed into one folder, and the
# image is that folder on a slim Python.
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
COPY adapter adapter
COPY apiservice apiservice
RUN python -m venv /opt/gpu-metrics-adapter \
 && /opt/gpu-metrics-adapter/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
 && /opt/gpu-metrics-adapter/bin/pip install --no-cache-dir --no-deps . \
 && /opt/gpu-metrics-adapter/bin/pip uninstall --yes --quiet pip

FROM python:${PYTHON}
LABEL org.opencontainers.image.title="gpu-metrics-adapter" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/gpu-metrics-adapter /opt/gpu-metrics-adapter
ENV PATH=/opt/gpu-metrics-adapter/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# A number, so that runAsNonRoot can be checked. The root file system may be read-only:
# only server.cert_dir, below /tmp, is written.
USER 65532:65532
EXPOSE 6443
EXPOSE 6000
ENTRYPOINT ["gpu-metrics-adapter"]
CMD ["serve"]

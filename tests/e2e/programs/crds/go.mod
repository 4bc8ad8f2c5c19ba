// Nothing is built here: what is read are the CRDs that these modules bring.
module gpu-metrics-adapter.dev/tests/e2e/programs/crds

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
)

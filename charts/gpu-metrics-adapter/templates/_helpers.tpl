{{- define "gpu-metrics-adapter.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpu-metrics-adapter.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gpu-metrics-adapter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "gpu-metrics-adapter.certificateSecret" -}}
{{- .Values.certificate.existingSecret | default (printf "%s-tls" (include "gpu-metrics-adapter.fullname" .)) -}}
{{- end }}

{{- /* Whole seconds, rounded up, of one of the adapter's durations: a number, or Go-style text. */ -}}
{{- define "gpu-metrics-adapter.seconds" -}}
{{- $text := toString . -}}
{{- if regexMatch "^[0-9.]+$" $text -}}
{{- ceil $text -}}
{{- else -}}
{{- /* unixEpoch cuts fractions off, so one second is added. */ -}}
{{- add1 (mustToDate "2006-01-02 MST" "1970-01-01 UTC" | mustDateModify $text | unixEpoch) -}}
{{- end -}}
{{- end }}

{{- /* Longer than the adapter takes to end by itself: server.drain, then at most server.grace. */ -}}
{{- define "gpu-metrics-adapter.terminationGrace" -}}
{{- $drain := dig "server" "drain" 5 .Values.config -}}
{{- $grace := dig "server" "grace" 20 .Values.config -}}
{{- add (include "gpu-metrics-adapter.seconds" $drain) (include "gpu-metrics-adapter.seconds" $grace) 10 -}}
{{- end }}

{{- define "gpu-metrics-adapter.refuseMistakes" -}}
{{- range list "cert_file" "key_file" }}
{{- if dig "server" . "" $.Values.config }}
{{- fail (printf "config.server.%s is set by the chart: name the Secret with the certificate in certificate.existingSecret" .) }}
{{- end }}
{{- end }}
{{- range list (list "keda" "enabled" "keda.enabled") (list "keda" "scaled_objects" "keda.scaledObjects") (list "external" "enabled" "externalMetrics.enabled") (list "external" "service" "externalMetrics.enabled") (list "nodepool" "apply" "nodepool.apply") (list "nodepool" "namespace" "the release's namespace") (list "nodepool" "namespaces" "nodepool.namespaces") }}
{{- if hasKey (get $.Values.config (index . 0) | default dict) (index . 1) }}
{{- fail (printf "config.%s.%s is set by the chart: use %s" (index . 0) (index . 1) (index . 2)) }}
{{- end }}
{{- end }}
{{- if dig "source" "prometheus" "password" "" .Values.config }}
{{- fail "config.source.prometheus.password would lie open in a ConfigMap: mount a Secret through volumes and volumeMounts, and give its path as password_file" }}
{{- end }}
{{- with .Values.certificate }}
{{- if and .existingSecret $.Values.apiServices.create (not .caBundle) }}
{{- fail "certificate.existingSecret needs certificate.caBundle, the CA in PEM that signed it: the API server trusts no other" }}
{{- end }}
{{- if and .caBundle (not .existingSecret) }}
{{- fail "certificate.caBundle goes with certificate.existingSecret: set both, or neither and the chart makes a certificate" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gpu-metrics-adapter.headless" -}}
{{- printf "%s-headless" (include "gpu-metrics-adapter.fullname" . | trunc 54 | trimSuffix "-") -}}
{{- end }}

{{- define "gpu-metrics-adapter.kedaPort" -}}
{{- dig "keda" "port" 6000 .Values.config -}}
{{- end }}

{{- /* Fails if an APIService is there already and points to a Service that is not ours.
Arguments: the root context, the APIService's name and how to leave it alone. Without a cluster
nothing can be seen. */ -}}
{{- define "gpu-metrics-adapter.refuseTakingOver" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $mend := index . 2 -}}
{{- $ours := printf "%s/%s" $root.Release.Namespace (include "gpu-metrics-adapter.fullname" $root) -}}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" $name -}}
{{- $owner := "the API server itself" -}}
{{- $theirs := "" -}}
{{- with .spec.service -}}
{{- $theirs = printf "%s/%s" .namespace .name -}}
{{- $owner = printf "Service %s" $theirs -}}
{{- end -}}
{{- if ne $theirs $ours -}}
{{- fail (printf "APIService %s belongs to %s and is not taken over: a cluster has one server of it. Remove that one first, or %s" $name $owner $mend) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.nodepool" -}}
{{- printf "%s-nodepool" (include "gpu-metrics-adapter.fullname" . | trunc 54 | trimSuffix "-") -}}
{{- end }}

{{- /* Not those of `serve`: its Services and its Deployment select by them. */ -}}
{{- define "gpu-metrics-adapter.nodepoolSelectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-nodepool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpu-metrics-adapter.nodepoolLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gpu-metrics-adapter.nodepoolSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* Values and clusters that the chart refuses, with the key and the fix. */ -}}

{{- /* Fails if values have names of other charts, with one line for each. */ -}}
{{- define "gpu-metrics-adapter.refuseOtherCharts" -}}
{{- $found := list -}}
{{- range $path, $answer := .Files.Get "files/othercharts.yaml" | fromYaml -}}
{{- $place := $.Values -}}
{{- range splitList "." $path -}}
{{- if kindIs "map" $place -}}
{{- $place = hasKey $place . | ternary (get $place .) nil -}}
{{- end -}}
{{- end -}}
{{- if not (kindIs "invalid" $place) -}}
{{- $found = append $found (printf "%s is a value of other charts: %s" $path (replace "has no equivalent" "this chart has no such value" $answer)) -}}
{{- end -}}
{{- end -}}
{{- with $found -}}
{{- fail (join "\n" .) -}}
{{- end -}}
{{- end }}

{{- /* Fails if a value needs a kind that the cluster lacks. Without access to the cluster, nothing is
checked. */ -}}
{{- define "gpu-metrics-adapter.refuseMissingKinds" -}}
{{- if include "gpu-metrics-adapter.live" . -}}
{{- $operator := "monitoring.coreos.com/v1" -}}
{{- $rows := list -}}
{{- $rows = append $rows (list .Values.serviceMonitor.enabled $operator "ServiceMonitor" "the Prometheus operator" "serviceMonitor.enabled=false") -}}
{{- $rows = append $rows (list .Values.alerts.enabled $operator "PrometheusRule" "the Prometheus operator" "alerts.enabled=false") -}}
{{- range list "Certificate" "Issuer" -}}
{{- $rows = append $rows (list (eq (include "gpu-metrics-adapter.certificateMode" $) "certManager") "cert-manager.io/v1" . "cert-manager" "certificate.mode=selfSigned") -}}
{{- end -}}
{{- range $rows -}}
{{- if and (index . 0) (not ($.Capabilities.APIVersions.Has (printf "%s/%s" (index . 1) (index . 2)))) -}}
{{- fail (printf "this cluster has no kind %s (%s): install %s first, or set %s" (index . 2) (index . 1) (index . 3) (index . 4)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Fails if `env` has a variable that the chart sets. */ -}}
{{- define "gpu-metrics-adapter.refuseVariables" -}}
{{- range include "gpu-metrics-adapter.environment" . | fromYamlArray -}}
{{- $name := .name -}}
{{- range $.Values.env -}}
{{- if eq .name $name -}}
{{- fail (printf "env must not set %s, which the chart sets" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.refuseMistakes" -}}
{{- include "gpu-metrics-adapter.refuseOtherCharts" . }}
{{- include "gpu-metrics-adapter.refuseMissingKinds" . }}
{{- include "gpu-metrics-adapter.refuseVariables" . }}
{{- if not (include "gpu-metrics-adapter.rbacWanted" .) }}
{{- if .Values.hpaReader.create }}
{{- fail "hpaReader.create needs rbac.create: set one of them" }}
{{- end }}
{{- if .Values.serviceMonitor.reader.serviceAccount.name }}
{{- fail "serviceMonitor.reader.serviceAccount.name needs rbac.create: set one of them" }}
{{- end }}
{{- end }}
{{- if and (eq (dig "type" "" (.Values.updateStrategy | default dict)) "Recreate") (dig "rollingUpdate" nil .Values.updateStrategy) }}
{{- fail "updateStrategy.type is Recreate: remove updateStrategy.rollingUpdate" }}
{{- end }}
{{- $own := include "gpu-metrics-adapter.ownRules" . | fromYaml }}
{{- if and $own (dig "existingConfigMap" "name" "" .Values.rules) }}
{{- fail "rules.existingConfigMap.name is set, and there are rules in values: remove one of them" }}
{{- end }}
{{- if and $own.externalRules (not .Values.externalMetrics.enabled) }}
{{- fail "rules.external needs externalMetrics.enabled" }}
{{- end }}
{{- if and $own.resourceRules (not (include "gpu-metrics-adapter.resourceMetricsWanted" .)) }}
{{- fail "rules.resource needs resourceMetrics.enabled" }}
{{- end }}
{{- if include "gpu-metrics-adapter.rulesConfigMap" . }}
{{- $source := $own | empty | ternary "rules.existingConfigMap" "rules" }}
{{- if dig "rules" "file" "" .Values.config }}
{{- fail (printf "config.rules.file is set by %s: remove one of them" $source) }}
{{- end }}
{{- if not (dig "source" "prometheus" "url" "" .Values.config) }}
{{- fail (printf "%s needs config.source.prometheus.url, the Prometheus with the series of the rules" $source) }}
{{- end }}
{{- end }}
{{- range list "cert_file" "key_file" }}
{{- if dig "server" . "" $.Values.config }}
{{- fail (printf "config.server.%s is set by the chart: name the Secret with the certificate in certificate.existingSecret" .) }}
{{- end }}
{{- end }}
{{- range list (list "keda" "enabled" "keda.enabled") (list "keda" "scaled_objects" "keda.scaledObjects") (list "external" "enabled" "externalMetrics.enabled") (list "external" "service" "externalMetrics.enabled") (list "delegation" "service_account" "config.delegation.token_file for another account") (list "delegation" "own_service" "the release's Service") (list "memory" "configmap" "memory.enabled") (list "rules" "resource_metrics" "resourceMetrics.enabled") (list "view" "enabled" "view.enabled") (list "nodepool" "apply" "nodepool.apply") (list "nodepool" "namespace" "the release's namespace") (list "nodepool" "namespaces" "nodepool.namespaces") (list "nodepool" "claim_namespaces" "nodepool.claimNamespaces") }}
{{- if hasKey (get $.Values.config (index . 0) | default dict) (index . 1) }}
{{- fail (printf "config.%s.%s is set by the chart: use %s" (index . 0) (index . 1) (index . 2)) }}
{{- end }}
{{- end }}
{{- if and (include "gpu-metrics-adapter.resourceMetricsWanted" .) (not (dig "rules" "file" "" .Values.config)) (or (not (include "gpu-metrics-adapter.rulesConfigMap" .)) (and $own (not $own.resourceRules))) }}
{{- fail "resourceMetrics.enabled needs rules.resource, or rules.existingConfigMap or config.rules.file with resourceRules: they give the values" }}
{{- end }}
{{- range list "app.kubernetes.io/name" "app.kubernetes.io/instance" }}
{{- if hasKey ($.Values.podLabels | default dict) . }}
{{- fail (printf "podLabels must not set %s: the Services and the Deployments select their pods by it" .) }}
{{- end }}
{{- if hasKey ($.Values.commonLabels | default dict) . }}
{{- fail (printf "commonLabels must not set %s: the Services and the Deployments select their pods by it" .) }}
{{- end }}
{{- end }}
{{- $port := include "gpu-metrics-adapter.serverPort" . | int }}
{{- if and .Values.keda.enabled (eq $port (include "gpu-metrics-adapter.kedaPort" . | int)) }}
{{- fail (printf "config.server.port and config.keda.port are both %d: change one" $port) }}
{{- end }}
{{- $probes := include "gpu-metrics-adapter.probePort" . | int }}
{{- if or (eq $port $probes) (and .Values.keda.enabled (eq $probes (include "gpu-metrics-adapter.kedaPort" . | int))) }}
{{- fail (printf "config.server.probe_port is %d, which another port uses: change one" $probes) }}
{{- end }}
{{- with .Values.serviceMonitor }}
{{- if gt (include "gpu-metrics-adapter.seconds" .scrapeTimeout | int) (include "gpu-metrics-adapter.seconds" .interval | int) }}
{{- fail "serviceMonitor.scrapeTimeout is longer than serviceMonitor.interval, which Prometheus refuses" }}
{{- end }}
{{- end }}
{{- if dig "source" "prometheus" "password" "" .Values.config }}
{{- fail "config.source.prometheus.password would be readable in a ConfigMap: mount a Secret through extraVolumes and extraVolumeMounts, and set password_file to its path" }}
{{- end }}
{{- with .Values.certificate }}
{{- if and (eq .mode "existingSecret") (not .existingSecret) }}
{{- fail "certificate.mode is existingSecret: name the Secret in certificate.existingSecret" }}
{{- end }}
{{- if and (eq .mode "certManager") .existingSecret }}
{{- fail "certificate.mode is certManager, which creates the Secret: remove certificate.existingSecret" }}
{{- end }}
{{- if lt (int .selfSigned.caValidDays) (mul 2 .selfSigned.validDays | int) }}
{{- fail "certificate.selfSigned.caValidDays must be at least twice certificate.selfSigned.validDays" }}
{{- end }}
{{- if and .existingSecret $.Values.apiServices.create (not .caBundle) }}
{{- fail "certificate.existingSecret needs certificate.caBundle, the PEM of the CA that signed it: the API server trusts only that CA" }}
{{- end }}
{{- if and .caBundle (not .existingSecret) }}
{{- fail "certificate.caBundle requires certificate.existingSecret: set both, or neither and the chart creates a certificate" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Fails if the APIService exists and points to another Service. Arguments: the root context, the
APIService's name and how to install without it. Without access to the cluster, nothing is checked.
*/ -}}
{{- define "gpu-metrics-adapter.refuseTakingOver" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $hint := index . 2 -}}
{{- $ours := printf "%s/%s" (include "gpu-metrics-adapter.namespace" $root) (include "gpu-metrics-adapter.fullname" $root) -}}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" $name -}}
{{- $owner := "the API server itself" -}}
{{- $theirs := "" -}}
{{- with .spec.service -}}
{{- $theirs = printf "%s/%s" .namespace .name -}}
{{- $owner = printf "Service %s" $theirs -}}
{{- end -}}
{{- if ne $theirs $ours -}}
{{- fail (printf "APIService %s belongs to %s and is not taken over: a cluster has one server for it. Remove that APIService first, or %s" $name $owner $hint) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Fails if an upgrade would delete an APIService that another Service has taken over. */ -}}
{{- define "gpu-metrics-adapter.refuseGivingAwayByDeletion" -}}
{{- $ours := printf "%s/%s" (include "gpu-metrics-adapter.namespace" .) (include "gpu-metrics-adapter.fullname" .) -}}
{{- $kept := include "gpu-metrics-adapter.apiServices" . | fromJsonArray -}}
{{- range list "v1beta1.custom.metrics.k8s.io" "v1beta2.custom.metrics.k8s.io" "v1beta1.external.metrics.k8s.io" "v1beta1.metrics.k8s.io" "v1alpha1.view.gpu-metrics-adapter.io" -}}
{{- if not (has . $kept) -}}
{{- $name := . -}}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" . -}}
{{- $notes := .metadata.annotations | default dict -}}
{{- $release := printf "%s/%s" (get $notes "meta.helm.sh/release-namespace") (get $notes "meta.helm.sh/release-name") -}}
{{- $theirs := printf "%s/%s" (dig "service" "namespace" "" .spec) (dig "service" "name" "" .spec) -}}
{{- if and (eq $release (printf "%s/%s" $.Release.Namespace $.Release.Name)) (ne $theirs $ours) (ne (get $notes "helm.sh/resource-policy") "keep") -}}
{{- fail (printf "APIService %s belongs to Service %s now, and Helm would delete it: run `kubectl annotate apiservice %s helm.sh/resource-policy=keep` first" $name $theirs $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

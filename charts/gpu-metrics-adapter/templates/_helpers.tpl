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

{{- define "gpu-metrics-adapter.image" -}}
{{- with .Values.image -}}
{{- .repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.certificateMode" -}}
{{- ternary "existingSecret" .Values.certificate.mode (not (empty .Values.certificate.existingSecret)) -}}
{{- end }}

{{- /* The Secret that the pods mount. */ -}}
{{- define "gpu-metrics-adapter.certificateSecret" -}}
{{- $mode := include "gpu-metrics-adapter.certificateMode" . -}}
{{- $name := include "gpu-metrics-adapter.fullname" . -}}
{{- if eq $mode "existingSecret" -}}
{{- .Values.certificate.existingSecret -}}
{{- else if eq $mode "certManager" -}}
{{- /* Not the rotator's Secret: after a change of mode, both would write to the same one. */ -}}
{{- $name }}-tls
{{- else -}}
{{- $name }}-certificate
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.authoritySecret" -}}
{{- include "gpu-metrics-adapter.fullname" . }}-ca
{{- end }}

{{- /* At most 52 characters, because the names of a CronJob's Jobs begin with its name. */ -}}
{{- define "gpu-metrics-adapter.certificates" -}}
{{- printf "%s-certificates" (include "gpu-metrics-adapter.fullname" . | trunc 39 | trimSuffix "-") -}}
{{- end }}

{{- define "gpu-metrics-adapter.unregister" -}}
{{- printf "%s-unregister" (include "gpu-metrics-adapter.fullname" . | trunc 41 | trimSuffix "-") -}}
{{- end }}

{{- /* Not empty unless the view API is off. `helm upgrade --reuse-values` from a release without this
value omits it; the API is then on, as by default. */ -}}
{{- define "gpu-metrics-adapter.viewWanted" -}}
{{- if dig "enabled" true (.Values.view | default dict) -}}
wanted
{{- end -}}
{{- end }}

{{- /* Not empty if metrics.k8s.io is served. `helm upgrade --reuse-values` from a release without this
value omits it; the API is then off, as by default. */ -}}
{{- define "gpu-metrics-adapter.resourceMetricsWanted" -}}
{{- if dig "enabled" false (.Values.resourceMetrics | default dict) -}}
wanted
{{- end -}}
{{- end }}

{{- /* The names of the APIServices of the release, as a JSON array. */ -}}
{{- define "gpu-metrics-adapter.apiServices" -}}
{{- $names := list -}}
{{- if .Values.apiServices.create -}}
{{- $names = list "v1beta1.custom.metrics.k8s.io" "v1beta2.custom.metrics.k8s.io" -}}
{{- if .Values.externalMetrics.enabled -}}
{{- $names = append $names "v1beta1.external.metrics.k8s.io" -}}
{{- end -}}
{{- if include "gpu-metrics-adapter.resourceMetricsWanted" . -}}
{{- $names = append $names "v1beta1.metrics.k8s.io" -}}
{{- end -}}
{{- if include "gpu-metrics-adapter.viewWanted" . -}}
{{- $names = append $names "v1alpha1.view.gpu-metrics-adapter.io" -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{- /* Not empty if Helm sees the cluster. `helm template`, which Argo CD uses, does not, and applying
its output runs no hooks. Every cluster has this APIService. */ -}}
{{- define "gpu-metrics-adapter.live" -}}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" "v1.apps" -}}
live
{{- end -}}
{{- end }}

{{- /* For Jobs: an object that belongs to another owner will still do so at the next attempt. */ -}}
{{- define "gpu-metrics-adapter.refusalIsFinal" -}}
podFailurePolicy:
  rules:
  - action: FailJob
    onExitCodes:
      containerName: maintain
      operator: In
      values: [2]
{{- end }}

{{- /* The securityContext of every pod. OpenShift assigns users to each namespace and rejects others.
*/ -}}
{{- define "gpu-metrics-adapter.podSecurity" -}}
runAsNonRoot: true
{{- if not (.Capabilities.APIVersions.Has "security.openshift.io/v1") }}
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* A pod that runs `maintain` once. Arguments: the root context, the name of the ServiceAccount, the
arguments of `maintain`, and the resources. */ -}}
{{- define "gpu-metrics-adapter.maintainPod" -}}
{{- $root := index . 0 -}}
{{- $account := index . 1 -}}
{{- $arguments := concat (list "maintain") (index . 2) (list "--namespace" $root.Release.Namespace "--service" (include "gpu-metrics-adapter.fullname" $root)) -}}
{{- range include "gpu-metrics-adapter.apiServices" $root | fromJsonArray -}}
{{- $arguments = concat $arguments (list "--apiservice" .) -}}
{{- end -}}
metadata:
  labels:
    # Different from the labels of `serve`, by which its Services select pods.
    app.kubernetes.io/name: {{ $root.Chart.Name }}-maintain
    app.kubernetes.io/instance: {{ $root.Release.Name }}
    app.kubernetes.io/component: {{ index . 2 | first }}
    {{- with omit ($root.Values.podLabels | default dict) "app.kubernetes.io/component" }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ $account }}
  restartPolicy: Never
  enableServiceLinks: false
  securityContext:
    {{- include "gpu-metrics-adapter.podSecurity" $root | nindent 4 }}
  containers:
  - name: maintain
    image: {{ include "gpu-metrics-adapter.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args:
    {{- toYaml $arguments | nindent 4 }}
    resources:
      {{- toYaml (index . 3) | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
{{- end }}

{{- /* Converts a duration of the adapter (a number, or Go-style text) to whole seconds, rounded up. */ -}}
{{- define "gpu-metrics-adapter.seconds" -}}
{{- $text := toString . -}}
{{- if regexMatch "^[0-9.]+$" $text -}}
{{- ceil $text -}}
{{- else -}}
{{- /* unixEpoch truncates fractions, so add one second. */ -}}
{{- add1 (mustToDate "2006-01-02 MST" "1970-01-01 UTC" | mustDateModify $text | unixEpoch) -}}
{{- end -}}
{{- end }}

{{- /* The settings: `config`, over the defaults that `make docs` writes. */ -}}
{{- define "gpu-metrics-adapter.config" -}}
{{- mergeOverwrite (.Files.Get "files/defaults.yaml" | fromYaml) (deepCopy .Values.config) | toYaml -}}
{{- end }}

{{- /* Longer than the adapter needs to stop: server.drain, then at most server.grace. */ -}}
{{- define "gpu-metrics-adapter.terminationGrace" -}}
{{- $drain := (include "gpu-metrics-adapter.config" . | fromYaml).server.drain -}}
{{- $grace := (include "gpu-metrics-adapter.config" . | fromYaml).server.grace -}}
{{- add (include "gpu-metrics-adapter.seconds" $drain) (include "gpu-metrics-adapter.seconds" $grace) 10 -}}
{{- end }}

{{- /* The ServiceAccount as which delegates are asked; empty without delegates, or with a token file. */ -}}
{{- define "gpu-metrics-adapter.delegationAccount" -}}
{{- $delegation := dig "delegation" dict .Values.config -}}
{{- if and $delegation.delegates (not $delegation.token_file) -}}
{{- include "gpu-metrics-adapter.fullname" . | trunc 52 | trimSuffix "-" }}-delegation
{{- end -}}
{{- end }}

{{- /* The ConfigMap with prometheus-adapter's rules; empty without one. `helm upgrade --reuse-values`
from a release without this value omits it. */ -}}
{{- define "gpu-metrics-adapter.rulesConfigMap" -}}
{{- dig "existingConfigMap" "name" "" (.Values.rules | default dict) -}}
{{- end }}

{{- /* The path of the rules file that the chart mounts. */ -}}
{{- define "gpu-metrics-adapter.rulesFile" -}}
/etc/gpu-metrics-adapter/rules/{{ dig "existingConfigMap" "key" "config.yaml" .Values.rules }}
{{- end }}

{{- define "gpu-metrics-adapter.refuseMistakes" -}}
{{- if include "gpu-metrics-adapter.rulesConfigMap" . }}
{{- if dig "rules" "file" "" .Values.config }}
{{- fail "config.rules.file is set by rules.existingConfigMap: remove one of them" }}
{{- end }}
{{- if not (dig "source" "prometheus" "url" "" .Values.config) }}
{{- fail "rules.existingConfigMap needs config.source.prometheus.url, the Prometheus with the series of the rules" }}
{{- end }}
{{- end }}
{{- range list "cert_file" "key_file" }}
{{- if dig "server" . "" $.Values.config }}
{{- fail (printf "config.server.%s is set by the chart: name the Secret with the certificate in certificate.existingSecret" .) }}
{{- end }}
{{- end }}
{{- range list (list "keda" "enabled" "keda.enabled") (list "keda" "scaled_objects" "keda.scaledObjects") (list "external" "enabled" "externalMetrics.enabled") (list "external" "service" "externalMetrics.enabled") (list "delegation" "service_account" "config.delegation.token_file for another account") (list "delegation" "own_service" "the release's Service") (list "rules" "resource_metrics" "resourceMetrics.enabled") (list "view" "enabled" "view.enabled") (list "nodepool" "apply" "nodepool.apply") (list "nodepool" "namespace" "the release's namespace") (list "nodepool" "namespaces" "nodepool.namespaces") (list "nodepool" "claim_namespaces" "nodepool.claimNamespaces") }}
{{- if hasKey (get $.Values.config (index . 0) | default dict) (index . 1) }}
{{- fail (printf "config.%s.%s is set by the chart: use %s" (index . 0) (index . 1) (index . 2)) }}
{{- end }}
{{- end }}
{{- if and (include "gpu-metrics-adapter.resourceMetricsWanted" .) (not (dig "rules" "file" "" .Values.config)) (not (include "gpu-metrics-adapter.rulesConfigMap" .)) }}
{{- fail "resourceMetrics.enabled needs rules.existingConfigMap or config.rules.file: the resourceRules of this file give the values" }}
{{- end }}
{{- range list "app.kubernetes.io/name" "app.kubernetes.io/instance" }}
{{- if hasKey ($.Values.podLabels | default dict) . }}
{{- fail (printf "podLabels must not set %s: the Services and the Deployments select their pods by it" .) }}
{{- end }}
{{- end }}
{{- $port := (include "gpu-metrics-adapter.config" . | fromYaml).server.port | int }}
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
{{- fail "config.source.prometheus.password would be readable in a ConfigMap: mount a Secret through volumes and volumeMounts, and set password_file to its path" }}
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

{{- define "gpu-metrics-adapter.headless" -}}
{{- printf "%s-headless" (include "gpu-metrics-adapter.fullname" . | trunc 54 | trimSuffix "-") -}}
{{- end }}

{{- define "gpu-metrics-adapter.probePort" -}}
{{- dig "server" "probe_port" nil .Values.config | default 8080 -}}
{{- end }}

{{- define "gpu-metrics-adapter.kedaPort" -}}
{{- (include "gpu-metrics-adapter.config" . | fromYaml).keda.port -}}
{{- end }}

{{- /* Fails if the APIService exists and points to another Service. Arguments: the root context, the
APIService's name and how to install without it. Without access to the cluster, nothing is checked.
*/ -}}
{{- define "gpu-metrics-adapter.refuseTakingOver" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $hint := index . 2 -}}
{{- $ours := printf "%s/%s" $root.Release.Namespace (include "gpu-metrics-adapter.fullname" $root) -}}
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
{{- $ours := printf "%s/%s" .Release.Namespace (include "gpu-metrics-adapter.fullname" .) -}}
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

{{- /* The caBundle in the manifest of a release that was installed when the chart still kept its
certificate there, in Secret NAME-tls; otherwise empty. Helm removes a field that the previous
manifest has and the next one lacks, and the API server would then reject the old pods until they are
replaced. So the field stays unchanged in every later manifest, and Helm does not touch the rotator's
value. The added line break makes the text different from the earlier one: a rollback to that revision
restores its CA. Arguments: the root context and the APIService's name. */ -}}
{{- define "gpu-metrics-adapter.caBefore" -}}
{{- $root := index . 0 -}}
{{- with lookup "apiregistration.k8s.io/v1" "APIService" "" (index . 1) -}}
{{- $kept := get (.metadata.annotations | default dict) "gpu-metrics-adapter.io/ca-before" -}}
{{- if $kept -}}
{{- $kept -}}
{{- else if .spec.caBundle -}}
{{- with lookup "v1" "Secret" $root.Release.Namespace (printf "%s-tls" (include "gpu-metrics-adapter.fullname" $root)) -}}
{{- if eq $root.Release.Name (get (.metadata.annotations | default dict) "meta.helm.sh/release-name") -}}
{{- printf "%s\n" (get (.data | default dict) "ca.crt" | b64dec) | b64enc -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.monitorCA" -}}
{{- printf "%s-monitor-ca" (include "gpu-metrics-adapter.fullname" . | trunc 52 | trimSuffix "-") -}}
{{- end }}

{{- define "gpu-metrics-adapter.nodepool" -}}
{{- printf "%s-nodepool" (include "gpu-metrics-adapter.fullname" . | trunc 54 | trimSuffix "-") -}}
{{- end }}

{{- /* Not empty unless the admission policies are off. `helm upgrade --reuse-values` from a release
without this value omits it; the policies are then on, as by default. */ -}}
{{- define "gpu-metrics-adapter.admissionPolicyWanted" -}}
{{- if dig "create" true (.Values.nodepool.admissionPolicy | default dict) -}}
wanted
{{- end -}}
{{- end }}

{{- /* The namespaces that may contain headroom, as JSON. */ -}}
{{- define "gpu-metrics-adapter.headroomNamespaces" -}}
{{- concat (list .Release.Namespace) (.Values.nodepool.claimNamespaces | default list) | uniq | toJson -}}
{{- end }}

{{- /* Different from the labels of `serve`, by which its Services and its Deployment select pods. */ -}}
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

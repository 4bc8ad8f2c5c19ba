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

{{- define "gpu-metrics-adapter.doctor" -}}
{{- printf "%s-doctor" (include "gpu-metrics-adapter.fullname" . | trunc 56 | trimSuffix "-") -}}
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

{{- /* The rules in values, as prometheus-adapter's configuration file; empty without one. `helm upgrade
--reuse-values` from a release without these values omits them. */ -}}
{{- define "gpu-metrics-adapter.ownRules" -}}
{{- $file := dict -}}
{{- range $key, $name := dict "custom" "rules" "external" "externalRules" "resource" "resourceRules" -}}
{{- with get ($.Values.rules | default dict) $key -}}
{{- $_ := set $file $name . -}}
{{- end -}}
{{- end -}}
{{- with $file -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{- /* The ConfigMap with prometheus-adapter's rules; empty without one. */ -}}
{{- define "gpu-metrics-adapter.rulesConfigMap" -}}
{{- if include "gpu-metrics-adapter.ownRules" . -}}
{{- printf "%s-rules" (include "gpu-metrics-adapter.fullname" . | trunc 57 | trimSuffix "-") -}}
{{- else -}}
{{- dig "existingConfigMap" "name" "" (.Values.rules | default dict) -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.rulesKey" -}}
{{- include "gpu-metrics-adapter.ownRules" . | empty | ternary (dig "existingConfigMap" "key" "config.yaml" (.Values.rules | default dict)) "config.yaml" -}}
{{- end }}

{{- /* The path of the rules file that the chart mounts. */ -}}
{{- define "gpu-metrics-adapter.rulesFile" -}}
/etc/gpu-metrics-adapter/rules/{{ include "gpu-metrics-adapter.rulesKey" . }}
{{- end }}

{{- define "gpu-metrics-adapter.headless" -}}
{{- printf "%s-headless" (include "gpu-metrics-adapter.fullname" . | trunc 54 | trimSuffix "-") -}}
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
{{- with lookup "v1" "Secret" (include "gpu-metrics-adapter.namespace" $root) (printf "%s-tls" (include "gpu-metrics-adapter.fullname" $root)) -}}
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
{{- concat (list (include "gpu-metrics-adapter.namespace" .)) (.Values.nodepool.claimNamespaces | default list) | uniq | toJson -}}
{{- end }}

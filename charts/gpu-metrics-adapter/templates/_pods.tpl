{{- /* Parts of the pods. */ -}}

{{- define "gpu-metrics-adapter.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ . }}/{{ end -}}
{{- .repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}

{{- /* A mapping with the keys of another one over it; null removes a key. Arguments: YAML, and the
mapping over it. */ -}}
{{- define "gpu-metrics-adapter.overlaid" -}}
{{- $all := index . 0 | fromYaml -}}
{{- range $key, $value := index . 1 | default dict -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $all $key -}}
{{- else -}}
{{- $_ := set $all $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{- /* The securityContext of every pod. OpenShift assigns users to each namespace and rejects others.
*/ -}}
{{- define "gpu-metrics-adapter.podSecurity" -}}
{{- $own := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if not (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}
{{- range list "runAsUser" "runAsGroup" "fsGroup" -}}
{{- $_ := set $own . 65532 -}}
{{- end -}}
{{- end -}}
{{- include "gpu-metrics-adapter.overlaid" (list (toYaml $own) .Values.podSecurityContext) -}}
{{- end }}

{{- /* The securityContext of every container of the chart's image. */ -}}
{{- define "gpu-metrics-adapter.containerSecurity" -}}
{{- $own := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- include "gpu-metrics-adapter.overlaid" (list (toYaml $own) .Values.securityContext) -}}
{{- end }}

{{- /* Where a pod runs, and with which secrets its images are pulled. Arguments: the root context and
the values of the component, which may have nodeSelector, tolerations and affinity of its own. */ -}}
{{- define "gpu-metrics-adapter.placement" -}}
{{- $values := (index . 0).Values -}}
{{- $own := index . 1 | default dict -}}
{{- $all := dict -}}
{{- range $key := list "nodeSelector" "tolerations" "affinity" -}}
{{- with get $own $key | default (get $values $key) -}}
{{- $_ := set $all $key . -}}
{{- end -}}
{{- end -}}
{{- range $key := list "imagePullSecrets" "priorityClassName" -}}
{{- with get $values $key -}}
{{- $_ := set $all $key . -}}
{{- end -}}
{{- end -}}
{{- with $all -}}
{{- toYaml . -}}
{{- end -}}
{{- end }}

{{- /* How a Deployment's pods are spread. An entry without labelSelector gets that of the component.
Arguments: the root context and the name of the template with the labels. */ -}}
{{- define "gpu-metrics-adapter.spread" -}}
{{- $root := index . 0 -}}
{{- $selector := dict "matchLabels" (include (index . 1) $root | fromYaml) -}}
{{- $rows := list -}}
{{- range $root.Values.topologySpreadConstraints -}}
{{- $rows = append $rows (merge dict . (dict "labelSelector" $selector)) -}}
{{- else -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" -}}
{{- $rows = append $rows (dict "topologyKey" . "maxSkew" 1 "whenUnsatisfiable" "ScheduleAnyway" "labelSelector" $selector) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rows -}}
{{- end }}

{{- /* The labels of a pod. Arguments: the root context and the component's own labels, as YAML. */ -}}
{{- define "gpu-metrics-adapter.podLabels" -}}
{{- $values := (index . 0).Values -}}
{{- merge dict (index . 1 | fromYaml) ($values.podLabels | default dict) ($values.commonLabels | default dict) | toYaml -}}
{{- end }}

{{- /* The environment of `serve` that the chart sets, as a YAML list. It overrides the user's file. */ -}}
{{- define "gpu-metrics-adapter.environment" -}}
{{- $service := printf "%s/%s" (include "gpu-metrics-adapter.namespace" .) (include "gpu-metrics-adapter.fullname" .) -}}
- name: GMA_SERVER__CERT_FILE
  value: /etc/gpu-metrics-adapter/tls/tls.crt
- name: GMA_SERVER__KEY_FILE
  value: /etc/gpu-metrics-adapter/tls/tls.key
- name: GMA_EXTERNAL__ENABLED
  value: {{ .Values.externalMetrics.enabled | quote }}
{{- if and .Values.externalMetrics.enabled .Values.apiServices.create }}
# The Service that the APIService must point to. The log and /metrics report a different one.
- name: GMA_EXTERNAL__SERVICE
  value: {{ $service }}
{{- end }}
{{- if .Values.memory.enabled }}
- name: GMA_MEMORY__CONFIGMAP
  value: {{ $service }}-memory
{{- end }}
{{- if dig "delegation" "delegates" list .Values.config }}
- name: GMA_DELEGATION__OWN_SERVICE
  value: {{ $service }}
{{- with include "gpu-metrics-adapter.delegationAccount" . }}
- name: GMA_DELEGATION__SERVICE_ACCOUNT
  value: {{ include "gpu-metrics-adapter.namespace" $ }}/{{ . }}
{{- end }}
{{- end }}
{{- if include "gpu-metrics-adapter.resourceMetricsWanted" . }}
- name: GMA_RULES__RESOURCE_METRICS
  value: "true"
{{- end }}
{{- if include "gpu-metrics-adapter.rulesConfigMap" . }}
- name: GMA_RULES__FILE
  value: {{ include "gpu-metrics-adapter.rulesFile" . }}
{{- end }}
- name: GMA_VIEW__ENABLED
  value: {{ include "gpu-metrics-adapter.viewWanted" . | empty | not | quote }}
{{- if include "gpu-metrics-adapter.hostNetwork" . }}
- name: GMA_SERVER__PORT
  value: {{ include "gpu-metrics-adapter.serverPort" . | quote }}
- name: GMA_KEDA__PORT
  value: {{ include "gpu-metrics-adapter.kedaPort" . | quote }}
{{- end }}
- name: GMA_SERVER__PROBE_PORT
  value: {{ include "gpu-metrics-adapter.probePort" . | quote }}
- name: GMA_KEDA__ENABLED
  value: {{ .Values.keda.enabled | quote }}
- name: GMA_KEDA__SCALED_OBJECTS
  value: {{ .Values.keda.scaledObjects | quote }}
{{- end }}

{{- /* Not empty if `serve` uses the network of its nodes. */ -}}
{{- define "gpu-metrics-adapter.hostNetwork" -}}
{{- if dig "enabled" false (.Values.hostNetwork | default dict) -}}
on
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.serverPort" -}}
{{- $usual := (include "gpu-metrics-adapter.config" . | fromYaml).server.port -}}
{{- $usual = include "gpu-metrics-adapter.hostNetwork" . | empty | ternary $usual (dig "port" $usual (.Values.hostNetwork | default dict)) -}}
{{- dig "server" "port" nil .Values.config | default $usual -}}
{{- end }}

{{- define "gpu-metrics-adapter.kedaPort" -}}
{{- $usual := (include "gpu-metrics-adapter.config" . | fromYaml).keda.port -}}
{{- $usual = include "gpu-metrics-adapter.hostNetwork" . | empty | ternary $usual (dig "kedaPort" $usual (.Values.hostNetwork | default dict)) -}}
{{- dig "keda" "port" nil .Values.config | default $usual -}}
{{- end }}

{{- define "gpu-metrics-adapter.probePort" -}}
{{- $usual := include "gpu-metrics-adapter.hostNetwork" . | empty | ternary 8080 (dig "probePort" 8080 (.Values.hostNetwork | default dict)) -}}
{{- dig "server" "probe_port" nil .Values.config | default $usual -}}
{{- end }}

{{- /* A pod that runs `maintain` once. Arguments: the root context, the component, the arguments of
`maintain`, and the component's values: resources and placement. */ -}}
{{- define "gpu-metrics-adapter.maintainPod" -}}
{{- $root := index . 0 -}}
{{- $arguments := concat (list "maintain") (index . 2) (list "--namespace" (include "gpu-metrics-adapter.namespace" $root) "--service" (include "gpu-metrics-adapter.fullname" $root)) -}}
{{- range include "gpu-metrics-adapter.apiServices" $root | fromJsonArray -}}
{{- $arguments = concat $arguments (list "--apiservice" .) -}}
{{- end -}}
{{- /* Different from the labels of `serve`, by which its Services select pods. */ -}}
{{- $labels := dict "app.kubernetes.io/name" (printf "%s-maintain" (include "gpu-metrics-adapter.name" $root)) "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/component" (index . 1) -}}
metadata:
  labels:
    {{- include "gpu-metrics-adapter.podLabels" (list $root (toYaml $labels)) | nindent 4 }}
  {{- with $root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "gpu-metrics-adapter.account" (list $root (index . 1)) }}
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
      {{- toYaml (index . 3).resources | nindent 6 }}
    securityContext:
      {{- include "gpu-metrics-adapter.containerSecurity" $root | nindent 6 }}
  {{- with include "gpu-metrics-adapter.placement" (list $root (index . 3)) }}
  {{- nindent 2 . }}
  {{- end }}
{{- end }}

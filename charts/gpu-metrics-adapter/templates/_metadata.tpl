{{- /* Names, labels, annotations and accounts of the chart's objects. */ -}}

{{- define "gpu-metrics-adapter.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 54 | trimSuffix "-" -}}
{{- end }}

{{- define "gpu-metrics-adapter.fullname" -}}
{{- $name := include "gpu-metrics-adapter.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "gpu-metrics-adapter.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end }}

{{- define "gpu-metrics-adapter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gpu-metrics-adapter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Different from the labels of `serve`, by which its Services and its Deployment select pods. */ -}}
{{- define "gpu-metrics-adapter.nodepoolSelectorLabels" -}}
app.kubernetes.io/name: {{ include "gpu-metrics-adapter.name" . }}-nodepool
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* The labels of an object, and its annotations if it has any. Arguments: the root context, the
component, and optionally labels and annotations of this object. `doctor` finds the Deployments by
`part-of` and `component`, which no value changes. */ -}}
{{- define "gpu-metrics-adapter.marks" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $labels := include (eq $component "nodepool" | ternary "gpu-metrics-adapter.nodepoolSelectorLabels" "gpu-metrics-adapter.selectorLabels") $root | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $_ := set $labels "app.kubernetes.io/component" $component -}}
{{- $_ := set $labels "app.kubernetes.io/part-of" $root.Chart.Name -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") -}}
{{- $own := list dict dict -}}
{{- range $place, $given := slice . 2 -}}
{{- if eq $place 0 -}}
{{- $own = list ($given | default dict) (index $own 1) -}}
{{- else -}}
{{- $own = list (index $own 0) ($given | default dict) -}}
{{- end -}}
{{- end -}}
labels:
  {{- merge dict $labels (index $own 0) ($root.Values.commonLabels | default dict) | toYaml | nindent 2 }}
{{- with merge dict (index $own 1) ($root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The values of a component's ServiceAccount, and its name if the chart creates it, as JSON.
Arguments: the root context and the component. */ -}}
{{- define "gpu-metrics-adapter.accountValues" -}}
{{- $values := (index . 0).Values -}}
{{- $rows := dict -}}
{{- $_ := set $rows "serve" (list "serviceAccount" $values.serviceAccount) -}}
{{- $_ := set $rows "nodepool" (list "nodepool.serviceAccount" (get $values.nodepool "serviceAccount")) -}}
{{- $_ := set $rows "certificates" (list "certificate.selfSigned.serviceAccount" (get $values.certificate.selfSigned "serviceAccount")) -}}
{{- $_ := set $rows "unregister" (list "hooks.serviceAccount" (get $values.hooks "serviceAccount")) -}}
{{- $_ := set $rows "doctor" (list "tests.serviceAccount" (get ($values.tests | default dict) "serviceAccount")) -}}
{{- $row := get $rows (index . 1) -}}
{{- $own := index $row 1 | default dict -}}
{{- dict "key" (index $row 0) "create" (dig "create" true $own) "name" (dig "name" "" $own) "annotations" (dig "annotations" dict $own) | toJson -}}
{{- end }}

{{- /* The name of a component's ServiceAccount. Arguments: the root context and the component. */ -}}
{{- define "gpu-metrics-adapter.account" -}}
{{- $own := include "gpu-metrics-adapter.accountValues" . | fromJson -}}
{{- if and (not $own.create) (not $own.name) -}}
{{- fail (printf "%s.create is false: name an existing ServiceAccount in %s.name" $own.key $own.key) -}}
{{- end -}}
{{- $made := dict "serve" "fullname" "nodepool" "nodepool" "certificates" "certificates" "unregister" "unregister" "doctor" "doctor" -}}
{{- $own.name | default (include (printf "gpu-metrics-adapter.%s" (get $made (index . 1))) (index . 0)) -}}
{{- end }}

{{- /* A component's ServiceAccount; nothing if another one is given. Arguments: the root context, the
component, and optionally annotations of a hook. */ -}}
{{- define "gpu-metrics-adapter.serviceAccount" -}}
{{- $root := index . 0 -}}
{{- $own := include "gpu-metrics-adapter.accountValues" . | fromJson -}}
{{- if $own.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "gpu-metrics-adapter.account" . }}
  namespace: {{ include "gpu-metrics-adapter.namespace" $root }}
  {{- $hook := dict -}}
  {{- range slice . 2 }}{{ $hook = . }}{{ end }}
  {{- include "gpu-metrics-adapter.marks" (list $root (index . 1) dict (merge dict $hook $own.annotations)) | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Not empty unless `rbac.create` is false. */ -}}
{{- define "gpu-metrics-adapter.rbacWanted" -}}
{{- if dig "create" true (.Values.rbac | default dict) -}}
wanted
{{- end -}}
{{- end }}

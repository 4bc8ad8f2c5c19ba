{{- /* Rules of NetworkPolicies, as YAML lists. An empty text means that the rule is omitted. */ -}}

{{- /* The port of a URL; empty without a URL. */ -}}
{{- define "gpu-metrics-adapter.urlPort" -}}
{{- $url := urlParse (toString .) -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- if $url.host -}}
{{- $port | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
{{- end }}

{{- /* TCP ports as in a NetworkPolicy, without duplicates: numbers, or names of the other pod's ports. */ -}}
{{- define "gpu-metrics-adapter.tcp" -}}
{{- range uniq . }}
- port: {{ . }}
  protocol: TCP
{{- end }}
{{- end }}

{{- /* Egress that every pod of the chart needs: DNS and the API server. */ -}}
{{- define "gpu-metrics-adapter.egressOfAll" -}}
# DNS: on some clusters kube-apiserver's address is a name. OpenShift's resolver listens on 5353.
- ports:
  {{- range list 53 5353 }}
  - {port: {{ . }}, protocol: UDP}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
# The API server, which is not a pod: a policy sees its own port, not the port of its Service.
- ports:
  {{- include "gpu-metrics-adapter.tcp" .Values.networkPolicy.apiServer.ports | trim | nindent 2 }}
  {{- with .Values.networkPolicy.apiServer.to }}
  to:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* Ports of exporters. */ -}}
{{- define "gpu-metrics-adapter.exporterPorts" -}}
{{- $scrape := dig "source" "scrape" dict .Values.config -}}
{{- $ports := .Values.networkPolicy.exporterPorts -}}
{{- range $scrape.exporters }}
{{- $ports = append $ports .port -}}
{{- end }}
{{- range $scrape.targets }}
{{- $ports = append $ports (include "gpu-metrics-adapter.urlPort" .url | int) -}}
{{- end }}
{{- toJson $ports -}}
{{- end }}

{{- /* Ports of inference servers' pages. */ -}}
{{- define "gpu-metrics-adapter.inferencePorts" -}}
{{- $inference := dig "source" "scrape" "inference" dict .Values.config -}}
{{- $ports := concat .Values.networkPolicy.inferencePorts ($inference.port_names | default list) -}}
{{- with $inference.port }}
{{- $ports = append $ports . -}}
{{- end }}
{{- toJson $ports -}}
{{- end }}

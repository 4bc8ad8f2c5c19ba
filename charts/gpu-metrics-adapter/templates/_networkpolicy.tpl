{{- /* Rules of NetworkPolicies, as lists in YAML; an empty text is no rule. */ -}}

{{- /* The port of a URL; empty without a URL. */ -}}
{{- define "gpu-metrics-adapter.urlPort" -}}
{{- $url := urlParse (toString .) -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" -}}
{{- if $url.host -}}
{{- $port | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end -}}
{{- end }}

{{- /* TCP ports as a policy has them, each once; numbers, or names of the other pod's ports. */ -}}
{{- define "gpu-metrics-adapter.tcp" -}}
{{- range uniq . }}
- port: {{ . }}
  protocol: TCP
{{- end }}
{{- end }}

{{- /* What every pod of the chart asks: names, and the API server. */ -}}
{{- define "gpu-metrics-adapter.egressOfAll" -}}
# Names: kube-apiserver's own is one on some clusters. OpenShift's resolver listens on 5353.
- ports:
  {{- range list 53 5353 }}
  - {port: {{ . }}, protocol: UDP}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
# The API server, which is on no pod's address: a policy sees its own port, not its Service's.
- ports:
  {{- include "gpu-metrics-adapter.tcp" .Values.networkPolicy.apiServer.ports | trim | nindent 2 }}
  {{- with .Values.networkPolicy.apiServer.to }}
  to:
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- /* Ports that exporters are read at. */ -}}
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

{{- /* Ports that pods' own pages are read at. */ -}}
{{- define "gpu-metrics-adapter.inferencePorts" -}}
{{- $inference := dig "source" "scrape" "inference" dict .Values.config -}}
{{- $ports := concat .Values.networkPolicy.inferencePorts ($inference.port_names | default list) -}}
{{- with $inference.port }}
{{- $ports = append $ports . -}}
{{- end }}
{{- toJson $ports -}}
{{- end }}

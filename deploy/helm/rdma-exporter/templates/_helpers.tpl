{{- define "rdma-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The full name leaves room for what the names of dashboards add. */}}
{{- define "rdma-exporter.fullname" -}}
{{- $name := include "rdma-exporter.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "rdma-exporter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "rdma-exporter.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rdma-exporter.labels" -}}
{{ include "rdma-exporter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "rdma-exporter.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "rdma-exporter.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "rdma-exporter.image" -}}
{{- with .Values.image }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* One flag, of a list of its name and value. Numbers come as floating-point ones,
of which large ones would be written with an exponent. What looks like a variable to
Kubernetes is none. */}}
{{- define "rdma-exporter.flag" -}}
{{- $name := index . 0 }}
{{- $value := index . 1 }}
{{- if kindIs "bool" $value }}
{{- if $value }}
- {{ printf "--%s" $name }}
{{- end }}
{{- else }}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}
{{- $value = int64 $value }}
{{- end }}
- {{ printf "--%s=%v" $name $value | replace "$(" "$$(" | toJson }}
{{- end }}
{{- end }}

{{- define "rdma-exporter.args" -}}
- --web.listen-address=:{{ .Values.web.port }}
{{- if .Values.config }}
- --config.file=/etc/rdma_exporter/config.yml
{{- end }}
{{- with .Values.web.config }}
{{- if .secret }}
- --web.config.file=/etc/rdma_exporter/web/{{ .key }}
{{- end }}
{{- end }}
{{- range $group, $members := .Values.flags }}
{{- if kindIs "map" $members }}
{{- range $name, $value := $members }}
{{- include "rdma-exporter.flag" (list (printf "%s.%s" $group $name) $value) }}
{{- end }}
{{- else }}
{{- include "rdma-exporter.flag" (list $group $members) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "rdma-exporter.healthcheck" -}}
- /usr/bin/rdma_exporter
- healthcheck
- --url=http://127.0.0.1:{{ .Values.web.port }}
{{- end }}

{{- /* What both kinds of monitor say of the endpoint. */}}
{{- define "rdma-exporter.endpoint" -}}
port: metrics
path: {{ dig "web" "telemetry-path" "/metrics" .Values.flags }}
{{- with .Values.monitor }}
interval: {{ .interval }}
scrapeTimeout: {{ .scrapeTimeout }}
scheme: {{ .scheme }}
{{- with .tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .basicAuth }}
basicAuth:
  {{- toYaml . | nindent 2 }}
{{- end }}
relabelings:
  - action: replace
    sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: instance
  - action: replace
    replacement: {{ .job | quote }}
    targetLabel: job
  {{- with .relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

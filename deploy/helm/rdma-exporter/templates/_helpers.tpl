{{- define "rdma-exporter.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The full name leaves room for what the names of dashboards add. A release may have
dots in its name. */}}
{{- define "rdma-exporter.fullname" -}}
{{- $name := include "rdma-exporter.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimAll "-." }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimAll "-." }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimAll "-." }}
{{- end }}
{{- end }}

{{- define "rdma-exporter.selectorLabels" -}}
app.kubernetes.io/name: {{ include "rdma-exporter.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "rdma-exporter.labels" -}}
{{ include "rdma-exporter.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "rdma-exporter.podAnnotations" -}}
kubectl.kubernetes.io/default-container: rdma-exporter
# The file is read once, at start, so a change has to restart the pods.
checksum/config: {{ include "rdma-exporter.config" . | sha256sum }}
{{- end }}

{{- /* Labels or annotations, of a list of the chart's and the user's. A key that both
have is the chart's: selectors go by it. */}}
{{- define "rdma-exporter.merged" -}}
{{- merge (index . 0 | fromYaml) (index . 1 | default dict) | toYaml }}
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
of which large ones would be written with an exponent. Kubernetes takes two dollars for
one, and replaces variables after a single one. */}}
{{- define "rdma-exporter.flag" -}}
{{- $name := index . 0 }}
{{- $value := index . 1 }}
{{- if kindIs "bool" $value }}
- --{{ ternary "" "no-" $value }}{{ $name }}
{{- else }}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) }}
{{- $value = int64 $value }}
{{- end }}
- {{ printf "--%s=%v" $name $value | replace "$" "$$" | toJson }}
{{- end }}
{{- end }}

{{- /* The configuration file; empty for none. Documents are where the runbook is, unless
it says otherwise. */}}
{{- define "rdma-exporter.config" -}}
{{- $config := .Values.config | default dict | deepCopy }}
{{- $url := .Values.prometheusRule.runbookURL }}
{{- if and $url (not (hasKey $config "docs_url")) }}
{{- $config = set $config "docs_url" $url }}
{{- end }}
{{- with $config }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* Whether to listen on the node's address and loopback alone. */}}
{{- define "rdma-exporter.listensOnNode" -}}
{{- and .Values.hostNetwork (ne .Values.web.address "all") | ternary "yes" "" }}
{{- end }}

{{- define "rdma-exporter.args" -}}
{{- if include "rdma-exporter.listensOnNode" . }}
- --web.listen-address=127.0.0.1:{{ .Values.web.port }}
- --web.listen-address=[$(NODE_ADDRESS)]:{{ .Values.web.port }}
{{- else }}
- --web.listen-address=:{{ .Values.web.port }}
{{- end }}
{{- if include "rdma-exporter.config" . }}
- --config.file=/etc/rdma_exporter/config.yml
{{- end }}
{{- if .Values.state }}
- --state.dir=/var/lib/rdma_exporter
{{- end }}
{{- if .Values.maintenance }}
- --maintenance.file=/etc/rdma_exporter/maintenance/maintenance
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

{{- /* Rules or a dashboard, of a list of the context and a text, with the site's own label in place of cluster. */}}
{{- define "rdma-exporter.ofClusters" -}}
{{- regexReplaceAll "\\bcluster\\b" (index . 1) (default "cluster" (index . 0).Values.prometheusRule.clusterLabel) }}
{{- end }}

{{- /* Matchers of Alertmanager, such as alertname =~ "A|B", as the prometheus-operator has them. */}}
{{- define "rdma-exporter.matchers" -}}
{{- range . }}
- name: {{ regexReplaceAll "^ *(\\w+).*$" . "${1}" }}
  matchType: {{ regexFind "[!=]?[=~]" . | quote }}
  value: {{ regexReplaceAll "^ *\\w+ *[!=]?[=~] *" . "" | trimAll "\"" | quote }}
{{- end }}
{{- end }}

{{- /* A duration of Prometheus in milliseconds. */}}
{{- define "rdma-exporter.milliseconds" -}}
{{- $units := dict "h" 3600000 "m" 60000 "s" 1000 "ms" 1 }}
{{- $sum := 0 }}
{{- range regexFindAll "[0-9]+[a-z]+" . -1 }}
{{- $sum = add $sum (mul (regexFind "[0-9]+" . | int64) (get $units (regexFind "[a-z]+" .))) }}
{{- end }}
{{- $sum }}
{{- end }}

{{- /* What both kinds of monitor say of the endpoint. */}}
{{- define "rdma-exporter.endpoint" -}}
port: metrics
path: {{ dig "web" "telemetry-path" "/metrics" (.Values.flags | default dict) | quote }}
{{- with .Values.monitor }}
{{- if and .interval .scrapeTimeout }}
{{- if gt (include "rdma-exporter.milliseconds" .scrapeTimeout | int64) (include "rdma-exporter.milliseconds" .interval | int64) }}
{{- fail (printf "monitor.scrapeTimeout %s is longer than monitor.interval %s, which the prometheus-operator refuses" .scrapeTimeout .interval) }}
{{- end }}
{{- end }}
{{- with .interval }}
interval: {{ . }}
{{- end }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
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

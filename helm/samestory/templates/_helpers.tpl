{{- define "samestory.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "samestory.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "samestory.labels" -}}
{{ include "samestory.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "samestory.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{- define "samestory.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "samestory.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* The roles of this layout, as JSON: the kinds of pods, and whether they are stateful. */}}
{{- define "samestory.roles" -}}
{{- if eq .Values.layout "single" -}}
{{- list (dict "name" "single" "suffix" "" "args" (list) "state" true) | toJson -}}
{{- else -}}
{{- list (dict "name" "route" "suffix" "-route" "args" (list "--role" "route") "state" false) (dict "name" "match" "suffix" "-match" "args" (list "--role" "match") "state" true) | toJson -}}
{{- end -}}
{{- end -}}

{{/* The stateful pods, which can answer queries. */}}
{{- define "samestory.state.selector" -}}
{{ include "samestory.selector" . }}
app.kubernetes.io/component: {{ ternary "single" "match" (eq .Values.layout "single") }}
{{- end -}}

{{/* A value as TOML. Numbers in values are floats, and an integer setting must not be written with a decimal point. */}}
{{- define "samestory.toml.value" -}}
{{- if kindIs "string" . -}}{{ toJson . }}
{{- else if kindIs "bool" . -}}{{ . }}
{{- else if kindIs "slice" . -}}
[{{ range $at, $one := . }}{{ if $at }}, {{ end }}{{ include "samestory.toml.value" $one }}{{ end }}]
{{- else if kindIs "map" . -}}
{ {{- range $at, $key := keys . | sortAlpha }}{{ if $at }},{{ end }} {{ toJson $key }} = {{ include "samestory.toml.value" (get $ $key) }}{{ end }} }
{{- else if eq (float64 (int64 .)) (float64 .) -}}{{ int64 . }}
{{- else -}}{{ . }}
{{- end -}}
{{- end -}}

{{/* Tables of tables: input.fields and languages.<code>; everything else below a table is a value. */}}
{{- define "samestory.toml" -}}
{{- range $table := keys . | sortAlpha }}
{{- $entries := get $ $table }}
[{{ $table }}]
{{- range $key := keys $entries | sortAlpha }}
{{- $value := get $entries $key }}
{{- if not (and (kindIs "map" $value) (or (eq $table "languages") (and (eq $table "input") (eq $key "fields")))) }}
{{ toJson $key }} = {{ include "samestory.toml.value" $value }}
{{- end }}
{{- end }}
{{- range $key := keys $entries | sortAlpha }}
{{- $value := get $entries $key }}
{{- if and (kindIs "map" $value) (or (eq $table "languages") (and (eq $table "input") (eq $key "fields"))) }}
[{{ $table }}.{{ $key }}]
{{- range $inner := keys $value | sortAlpha }}
{{ toJson $inner }} = {{ include "samestory.toml.value" (get $value $inner) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The operator's settings, and those that the chart sets itself. */}}
{{- define "samestory.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $http := dict "listen" (printf "0.0.0.0:%d" (int .Values.http.port)) -}}
{{- if .Values.query.enabled -}}
{{- $_ := set $http "query" (printf "0.0.0.0:%d" (int .Values.query.port)) -}}
{{- $_ := set $http "peers" (list (printf "dns://%s-peers:%d" (include "samestory.fullname" .) (int .Values.query.port))) -}}
{{- $_ := set $http "peer_timeout" .Values.query.peerTimeout -}}
{{- $name := printf "%s-query" (include "samestory.fullname" .) -}}
{{- $space := printf "%s.%s" $name .Release.Namespace -}}
{{- $_ := set $http "hosts" (concat (list $name $space (printf "%s.svc" $space) (printf "%s.svc.cluster.local" $space)) .Values.query.hosts) -}}
{{- end -}}
{{- $_ := set $config "http" $http -}}
{{- $_ := set $config "stage" (merge (dict "state" "/var/lib/samestory") (get $config "stage" | default dict)) -}}
{{- $kafka := get $config "kafka" | default dict -}}
{{- with .Values.tls -}}
{{- if .existingSecret -}}
{{- $_ := set $kafka "ssl.ca.location" (printf "/etc/samestory/tls/%s" .ca) -}}
{{- if .certificate -}}{{- $_ := set $kafka "ssl.certificate.location" (printf "/etc/samestory/tls/%s" .certificate) -}}{{- end -}}
{{- if .key -}}{{- $_ := set $kafka "ssl.key.location" (printf "/etc/samestory/tls/%s" .key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $config "kafka" $kafka -}}
{{- include "samestory.toml" $config | trim -}}
{{- end -}}

{{/* The shutdown timeout in seconds: config.stage.shutdown, or the program's default of 20s. */}}
{{- define "samestory.shutdown" -}}
{{- $text := dig "stage" "shutdown" "20s" .Values.config -}}
{{- $number := regexFind "^[0-9]+" $text | int -}}
{{- $unit := regexFind "[a-z]+$" $text -}}
{{- if eq $unit "ms" -}}1{{- else if eq $unit "m" -}}{{ mul $number 60 }}{{- else if eq $unit "h" -}}{{ mul $number 3600 }}{{- else -}}{{ $number }}{{- end -}}
{{- end -}}

{{/* What every container of the program needs. */}}
{{- define "samestory.container" -}}
image: {{ include "samestory.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- toYaml .Values.securityContext | nindent 2 }}
env:
  - name: SAMESTORY_CONFIG
    value: /etc/samestory/samestory.toml
  - name: SAMESTORY_LOG
    value: {{ .Values.logLevel }}
  - name: SAMESTORY_INSTANCE
    valueFrom: { fieldRef: { fieldPath: metadata.name } }
  {{- range $property, $from := .Values.kafkaSecrets }}
  - name: SAMESTORY__KAFKA__{{ $property | upper | replace "." "_" }}
    valueFrom: { secretKeyRef: { name: {{ $from.secret | quote }}, key: {{ $from.key | quote }} } }
  {{- end }}
  {{- if .Values.query.token.existingSecret }}
  - name: SAMESTORY__HTTP__TOKEN
    valueFrom: { secretKeyRef: { name: {{ .Values.query.token.existingSecret | quote }}, key: {{ .Values.query.token.key | quote }} } }
  {{- end }}
  {{- with .Values.extraEnv }}{{ toYaml . | nindent 2 }}{{ end }}
{{- end -}}

{{- define "samestory.mounts" -}}
- { name: config, mountPath: /etc/samestory/samestory.toml, subPath: samestory.toml, readOnly: true }
{{- if .Values.tls.existingSecret }}
- { name: tls, mountPath: /etc/samestory/tls, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "samestory.volumes" -}}
{{- if .Values.tls.existingSecret }}
- { name: tls, secret: { secretName: {{ .Values.tls.existingSecret | quote }}, defaultMode: 0440 } }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

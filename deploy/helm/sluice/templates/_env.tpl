{{/* Environment variables. Secrets come by reference alone. */}}

{{/* Addresses and keys that lie in Secrets: dict "root" $ "optional" true where the Secret may not exist yet. */}}
{{- define "sluice.redisUrl" -}}
- name: REDIS_URL
  valueFrom:
    secretKeyRef:
      {{- if .root.Values.redis.bundled.enabled }}
      name: {{ include "sluice.fullname" .root }}-redis
      key: REDIS_URL
      {{- else }}
      name: {{ .root.Values.redis.url.secret }}
      key: {{ .root.Values.redis.url.key }}
      {{- end }}
      {{- if .optional }}
      optional: true
      {{- end }}
{{- end -}}

{{/* dict "root" $ "url" $otherUrl: another user's address, if it has a secret. */}}
{{- define "sluice.databaseUrl" -}}
{{- $url := ternary .url .root.Values.database.url (not (empty (dig "secret" "" (.url | default dict)))) -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      {{- if $url.secret }}
      name: {{ $url.secret }}
      key: {{ $url.key }}
      {{- else }}
      name: {{ include "sluice.fullname" .root }}-postgres
      key: DATABASE_URL
      {{- end }}
{{- end -}}

{{- define "sluice.metricsToken" -}}
{{- with .Values.metrics.token.secret }}
- name: METRICS_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.metrics.token.key }}
{{- end }}
{{- end -}}

{{/* Settings of values.yaml, as variables. Without quotes, YAML reads on and off as true and false. */}}
{{- define "sluice.settings" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ if kindIs "bool" $value }}{{ ternary "on" "off" $value | quote }}{{ else }}{{ include "sluice.text" $value | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/* Of every role. */}}
{{- define "sluice.sharedEnv" -}}
- name: HOST
  value: {{ .Values.host | quote }}
- name: SLUICE_DATA_DIR
  value: /data/sluice
{{- with .Values.files.bucket.url }}
- name: BLOBS_URL
  value: {{ . | quote }}
{{- end }}
- name: SLUICE_SHUTDOWN_SECONDS
  value: {{ include "sluice.drainSeconds" . | quote }}
- name: SLUICE_SANDBOX
  value: {{ ternary "auto" "off" .Values.sandbox.enabled | quote }}
{{- if .Values.sandbox.enabled }}
- name: SANDBOX_BASE_URL
  value: http://{{ include "sluice.fullname" . }}-sandbox:8090/v1
{{- end }}
{{- end -}}

{{- define "sluice.configurationEnv" -}}
{{- if .Values.configuration }}
- name: SLUICE_CONFIG
  value: /etc/sluice/configuration/sluice.yaml
{{- end }}
{{- end -}}

{{/* Of api processes: their own settings replace those of all roles. dict "root" $ and, before an
     installation, "optionalRedis" true and "databaseUrl" $otherUrl. */}}
{{- define "sluice.apiEnv" -}}
{{- $root := .root -}}
{{ include "sluice.sharedEnv" $root }}
- name: PORT
  value: "8080"
- name: METRICS_PORT
  value: "9091"
- name: PUBLIC_URL
  value: {{ include "sluice.publicUrls" $root | quote }}
{{- with $root.Values.trustProxy }}
- name: TRUST_PROXY
  value: {{ include "sluice.text" . | quote }}
{{- end }}
- name: SLUICE_LAME_DUCK_SECONDS
  value: {{ include "sluice.text" $root.Values.shutdown.lameDuckSeconds | quote }}
{{- if and $root.Values.migration.enabled (not $root.Values.database.bundled.enabled) }}
# The hook does it.
- name: SLUICE_MIGRATE_AT_START
  value: "off"
{{- end }}
{{- if not (or $root.Values.files.claim.name $root.Values.files.claim.create) }}
# A spool on a volume that ends with its pod would lose what Redis was relieved of.
- name: SLUICE_SPOOL_MEGABYTES
  value: "0"
{{- end }}
{{ include "sluice.redisUrl" (dict "root" $root "optional" .optionalRedis) }}
{{ include "sluice.databaseUrl" (dict "root" $root "url" .databaseUrl) }}
{{- include "sluice.metricsToken" $root }}
{{- include "sluice.settings" (merge (deepCopy $root.Values.api.settings) $root.Values.settings) }}
{{- end -}}

{{/* Of a worker: dict "root" $ "worker" $worker. */}}
{{- define "sluice.workerEnv" -}}
{{ include "sluice.sharedEnv" .root }}
- name: WORKER_PORT
  value: "9090"
{{- range .worker.capabilities }}
- name: WORKER_CONCURRENCY_{{ upper . }}
  value: {{ include "sluice.text" $.worker.concurrency | quote }}
{{- end }}
{{ include "sluice.redisUrl" (dict "root" .root) }}
{{- include "sluice.configurationEnv" .root }}
{{- include "sluice.metricsToken" .root }}
{{- include "sluice.settings" (merge (deepCopy .worker.settings) .root.Values.settings) }}
{{- end -}}

{{/* The addresses of values.yaml, and the names that pods of this cluster use. */}}
{{- define "sluice.publicUrls" -}}
{{- $name := include "sluice.fullname" . -}}
{{- $port := include "sluice.text" .Values.api.service.port -}}
{{- $suffix := ternary "" (printf ":%s" $port) (eq $port "80") -}}
{{- $urls := .Values.publicUrls -}}
{{- range list "" (printf ".%s" .Release.Namespace) (printf ".%s.svc" .Release.Namespace) (printf ".%s.svc.cluster.local" .Release.Namespace) -}}
{{- $urls = append $urls (printf "http://%s%s%s" $name . $suffix) -}}
{{- end -}}
{{- join "," $urls -}}
{{- end -}}

{{/* Secrets whose keys all become variables: dict "names" (list …). */}}
{{- define "sluice.envFrom" -}}
{{- $names := compact . -}}
{{- if $names }}
envFrom:
  {{- range $names }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Names, labels and times that several objects share. */}}

{{- define "sluice.fullname" -}}
{{- $name := ternary .Release.Name (printf "%s-sluice" .Release.Name) (contains "sluice" .Release.Name) -}}
{{- $name | trunc 32 | trimSuffix "-" -}}
{{- end -}}

{{/* Of one component: dict "root" $ "component" "api". */}}
{{- define "sluice.selector" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "sluice.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "sluice.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "sluice.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{/* A value as text. Helm reads whole numbers as floating ones, and would write 1e+06. */}}
{{- define "sluice.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* Api processes give jobs their deadlines, so their own setting decides; a setting precedes the configuration file. */}}
{{- define "sluice.deadlineSeconds" -}}
{{- $inFile := dig "limits" "deadline_seconds" nil (.Values.configuration | merge (dict "limits" dict)) -}}
{{- include "sluice.text" (coalesce .Values.api.settings.SLUICE_DEADLINE_SECONDS .Values.settings.SLUICE_DEADLINE_SECONDS $inFile 600) -}}
{{- end -}}

{{- define "sluice.drainSeconds" -}}
{{- if hasKey .Values.shutdown "drainSeconds" -}}
{{- include "sluice.text" .Values.shutdown.drainSeconds -}}
{{- else -}}
{{- include "sluice.deadlineSeconds" . -}}
{{- end -}}
{{- end -}}

{{/* How long a pod may take to end: what it needs by its settings, and 30 s for what follows. A worker takes no requests. */}}
{{- define "sluice.apiGraceSeconds" -}}
{{- add (include "sluice.drainSeconds" . | int64) (.Values.shutdown.lameDuckSeconds | int64) 30 -}}
{{- end -}}
{{- define "sluice.workerGraceSeconds" -}}
{{- add (include "sluice.drainSeconds" . | int64) 30 -}}
{{- end -}}

{{/* The workers, as JSON, each with the defaults of what it leaves out. */}}
{{- define "sluice.workers" -}}
{{- $workers := list -}}
{{- range .Values.workers -}}
{{- $workers = append $workers (mergeOverwrite (deepCopy $.Values.workerDefaults) .) -}}
{{- end -}}
{{- $workers | toJson -}}
{{- end -}}

{{/* Stops the rendering where values that are valid each are not so together. */}}
{{- define "sluice.check" -}}
{{- $values := .Values -}}
{{- if not $values.image.repository }}{{ fail "image.repository is required: the image that the Dockerfile builds, in a registry that the cluster reaches." }}{{ end -}}
{{- if not (or $values.redis.url.secret $values.redis.bundled.enabled) }}{{ fail "Redis is required: redis.url.secret, or redis.bundled.enabled to try things out." }}{{ end -}}
{{- if not (or $values.database.url.secret $values.database.bundled.enabled) }}{{ fail "Postgres is required: database.url.secret, or database.bundled.enabled to try things out." }}{{ end -}}
{{- if and $values.redis.url.secret $values.redis.bundled.enabled }}{{ fail "redis.url.secret and redis.bundled.enabled exclude each other." }}{{ end -}}
{{- if and $values.database.url.secret $values.database.bundled.enabled }}{{ fail "database.url.secret and database.bundled.enabled exclude each other." }}{{ end -}}
{{- $claim := or $values.files.claim.name $values.files.claim.create -}}
{{- if not (or $values.files.bucket.url $claim) }}{{ fail "Files need a place that all pods share: files.bucket.url, files.claim.name or files.claim.create." }}{{ end -}}
{{- if and $values.files.bucket.url $claim }}{{ fail "files.bucket.url and files.claim exclude each other." }}{{ end -}}
{{- if and $values.scaling.enabled (not $values.scaling.prometheus.serverAddress) }}{{ fail "scaling.enabled needs scaling.prometheus.serverAddress." }}{{ end -}}
{{- if and $values.scaling.prometheus.authModes (not $values.scaling.prometheus.authenticationRef) }}{{ fail "scaling.prometheus.authModes needs scaling.prometheus.authenticationRef." }}{{ end -}}
{{- if and $values.metrics.monitors.enabled (not $values.metrics.token.secret) }}{{ fail "metrics.monitors needs metrics.token.secret: workers refuse scrapes without a token." }}{{ end -}}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) }}{{ fail "ingress.enabled needs ingress.hosts." }}{{ end -}}
{{- $known := list -}}
{{- range $values.publicUrls }}{{ $known = append $known (urlParse .).hostname }}{{ end -}}
{{- range ternary $values.ingress.hosts list $values.ingress.enabled -}}
{{- if not (has . $known) }}{{ fail (printf "ingress.hosts has %s, which is in none of publicUrls: the gateway would refuse each request under that name. Add https://%s to publicUrls." . .) }}{{ end -}}
{{- end -}}
{{- if and $values.api.autoscaling.enabled (gt ($values.api.autoscaling.minReplicas | int64) ($values.api.autoscaling.maxReplicas | int64)) }}{{ fail "api.autoscaling.minReplicas is above api.autoscaling.maxReplicas." }}{{ end -}}
{{- range $vendor, $entry := $values.configuration.vendors -}}
{{- if kindIs "map" $entry -}}
{{- $keys := compact (list $entry.api_key) -}}
{{- if kindIs "slice" $entry.api_keys }}{{ $keys = concat $keys $entry.api_keys }}{{ end -}}
{{- range splitList "," (join "," $keys) -}}
{{- if and . (not (regexMatch `\$\{\w+\}` .)) }}{{ fail (printf "configuration.vendors.%s has a key, which everybody could read in the ConfigMap: put it into the Secret of secrets.vendors, and name it here as ${NAME}." $vendor) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $mounted := list -}}
{{- range $values.mounts -}}
{{- if has .name $mounted }}{{ fail (printf "Two mounts have the name %s." .name) }}{{ end -}}
{{- $mounted = append $mounted .name -}}
{{- end -}}
{{- $names := list -}}
{{- $scaled := list -}}
{{- range (include "sluice.workers" . | fromJsonArray) -}}
{{- if has .name $names }}{{ fail (printf "Two workers have the name %s." .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- $worker := . -}}
{{- if .scaling.enabled -}}
{{- if gt (.scaling.minReplicas | int64) (.scaling.maxReplicas | int64) }}{{ fail (printf "Worker %s: scaling.minReplicas is above scaling.maxReplicas." .name) }}{{ end -}}
{{- range .capabilities -}}
{{- if and $values.scaling.enabled (has . $scaled) }}{{ fail (printf "Two workers scale by the queue of %s, and both would start pods for all of it: set scaling.enabled to false for %s." . $worker.name) }}{{ end -}}
{{- $scaled = append $scaled . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

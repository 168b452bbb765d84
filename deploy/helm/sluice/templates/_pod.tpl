{{/* What the pods of all roles have in common. */}}

{{/* Of a pod: no rights, no token of the cluster's API, and no variables named after Services, which may look like settings. */}}
{{- define "sluice.podBasics" -}}
serviceAccountName: {{ include "sluice.serviceAccount" . }}
{{ include "sluice.podRights" (dict "user" 1000) }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "sluice.podRights" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: {{ .user }}
  fsGroup: {{ .user }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "sluice.containerRights" -}}
securityContext:
  allowPrivilegeEscalation: false
  privileged: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* Where pods of a component run: dict "root" $ "component" "api" "of" $values. */}}
{{- define "sluice.placement" -}}
{{- with .of.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .of.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
topologySpreadConstraints:
  {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "sluice.selector" $ | nindent 8 }}
  {{- end }}
{{- end -}}

{{/* Metadata of a pod template: dict "root" $ "component" "api" "of" $values. A changed configuration file replaces the pods. */}}
{{- define "sluice.podMetadata" -}}
labels:
  {{- include "sluice.labels" . | nindent 2 }}
  {{- with .of.podLabels }}{{ toYaml . | nindent 2 }}{{ end }}
{{- $annotations := dict -}}
{{- if .root.Values.configuration }}{{ $_ := set $annotations "checksum/configuration" (.root.Values.configuration | toJson | sha256sum) }}{{ end -}}
{{- with mergeOverwrite $annotations (deepCopy .of.podAnnotations) }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The data folder lies inside the volume: a process makes it with the rights that it wants. */}}
{{- define "sluice.volumeMounts" -}}
- name: data
  mountPath: /data
- name: scratch
  mountPath: /tmp
{{- if .Values.configuration }}
- name: configuration
  mountPath: /etc/sluice/configuration
  readOnly: true
{{- end }}
{{- include "sluice.moreMounts" . }}
{{- end -}}

{{- define "sluice.moreMounts" -}}
{{- range .Values.mounts }}
- name: mount-{{ .name }}
  mountPath: /etc/sluice/mounts/{{ .name }}
  readOnly: true
{{- end }}
{{- end -}}

{{- define "sluice.volumes" -}}
- name: data
  {{- if or .Values.files.claim.name .Values.files.claim.create }}
  persistentVolumeClaim:
    claimName: {{ .Values.files.claim.name | default (printf "%s-files" (include "sluice.fullname" .)) }}
  {{- else }}
  emptyDir:
    sizeLimit: {{ .Values.files.scratchSize }}
  {{- end }}
- name: scratch
  emptyDir:
    sizeLimit: {{ .Values.files.scratchSize }}
{{- if .Values.configuration }}
- name: configuration
  configMap:
    name: {{ include "sluice.fullname" . }}
{{- end }}
{{- include "sluice.moreVolumes" . }}
{{- end -}}

{{- define "sluice.moreVolumes" -}}
{{- range .Values.mounts }}
- name: mount-{{ .name }}
  {{- if .secret }}
  secret:
    secretName: {{ .secret }}
    # Readable by the group, which is fsGroup.
    defaultMode: 0440
  {{- else }}
  configMap:
    name: {{ .configMap }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Apart: started at all, can take work, hangs. Nothing restarts a pod because Redis is away. */}}
{{- define "sluice.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: {{ . }} }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 90
readinessProbe:
  httpGet: { path: /readyz, port: {{ . }} }
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 2
livenessProbe:
  httpGet: { path: /healthz, port: {{ . }} }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

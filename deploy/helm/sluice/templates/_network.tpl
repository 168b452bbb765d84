{{/* Calls of api, workers and the migration: names, and everything but the metadata of the cloud. dict is .Values.networkPolicy. */}}
{{- define "sluice.egress" -}}
{{- $denied := dict "4" list "6" (list "fe80::/10" "fd00:ec2::254/128") -}}
{{- range .denyEgressTo -}}
{{- $version := ternary "6" "4" (contains ":" .) -}}
{{- $_ := set $denied $version (append (get $denied $version) . | uniq) -}}
{{- end -}}
- ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        {{- with get $denied "4" }}
        except: {{- toYaml . | nindent 10 }}
        {{- end }}
    - ipBlock:
        cidr: ::/0
        except: {{- toYaml (get $denied "6") | nindent 10 }}
{{- with .extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

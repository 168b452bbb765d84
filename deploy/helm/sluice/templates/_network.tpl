{{/* Calls of api, workers and the migration: names, and everything but the metadata of the cloud. dict is .Values.networkPolicy. */}}
{{- define "sluice.egress" -}}
- ports:
    - { protocol: UDP, port: 53 }
    - { protocol: TCP, port: 53 }
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        {{- with .denyEgressTo }}
        except: {{- toYaml . | nindent 10 }}
        {{- end }}
    - ipBlock:
        cidr: ::/0
        except: [fe80::/10, "fd00:ec2::254/128"]
{{- with .extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gpuaas.labels" -}}
app.kubernetes.io/part-of: gpuaas
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gpuaas.tlsSecret" -}}
{{- default "gpuaas-server-tls" .Values.server.tlsSecret -}}
{{- end }}

{{/* Whether some node gives its GPUs by dynamic resource allocation. */}}
{{- define "gpuaas.hasDra" -}}
{{- or (eq .Values.agent.mode "dra") (not (empty .Values.agent.dra.nodes)) -}}
{{- end }}

{{/* What every container but the agent's runs with. */}}
{{- define "gpuaas.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What the agent's container asks for: with driverAccess resource also the driver's device nodes. */}}
{{- define "gpuaas.agentResources" -}}
{{- $own := dict }}
{{- if eq .Values.agent.driverAccess "resource" }}
{{- $own = dict "limits" (dict "gpuaas.io/driver-access" "1") }}
{{- end }}
{{- mustMergeOverwrite (deepCopy .Values.agent.resources) $own | toYaml }}
{{- end }}

{{/* Of the driver the agent mounts two folders: its root may be that of the node. */}}
{{- define "gpuaas.driverDev" -}}
{{ trimSuffix "/" .Values.agent.driverRoot }}/dev
{{- end }}
{{- define "gpuaas.driverLib" -}}
{{ trimSuffix "/" .Values.agent.driverRoot }}/{{ dir .Values.agent.nvmlLibrary }}
{{- end }}

{{/* The paths of nodes that our pods may mount, as a JSON list. */}}
{{- define "gpuaas.hostPaths" -}}
{{- $paths := list "/var/lib/kubelet/device-plugins" "/var/lib/kubelet/pod-resources" "/var/run/cdi" "/var/lib/gpuaas" (include "gpuaas.driverDev" .) (include "gpuaas.driverLib" .) }}
{{- if eq (include "gpuaas.hasDra" .) "true" }}
{{- $paths = concat $paths (list "/var/lib/kubelet/plugins" "/var/lib/kubelet/plugins_registry") }}
{{- end }}
{{- range .Values.agent.extraVolumes }}
{{- if .hostPath }}
{{- $paths = append $paths .hostPath.path }}
{{- end }}
{{- end }}
{{- toJson (uniq $paths) }}
{{- end }}

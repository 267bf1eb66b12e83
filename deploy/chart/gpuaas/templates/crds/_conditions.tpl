{{/* Conditions as Kubernetes has them. */}}
{{- define "gpuaas.conditions" -}}
type: array
x-kubernetes-list-type: map
x-kubernetes-list-map-keys: [type]
items:
  type: object
  required: [type, status, reason, message, lastTransitionTime]
  properties:
    type: {type: string, maxLength: 316, pattern: '^[A-Z][A-Za-z0-9]*$'}
    status: {type: string, enum: ["True", "False", Unknown]}
    reason: {type: string, minLength: 1, maxLength: 1024}
    message: {type: string, maxLength: 32768}
    lastTransitionTime: {type: string, format: date-time}
    observedGeneration: {type: integer, format: int64, minimum: 0}
{{- end }}

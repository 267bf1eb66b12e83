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

{{/* Of a GPU or a MIG device that is out of use by itself. */}}
{{- define "gpuaas.fault" -}}
type: object
required: [kind, state, dead]
description: Of what is out of use by itself.
properties:
  kind: {type: string, enum: [xid, lost, error, hung, crash, driver, recovery]}
  state: {type: string, enum: [unhealthy, recovering]}
  dead: {type: boolean, description: What runs on it does not go on.}
  since: {type: string, format: date-time}
  pods:
    type: array
    maxItems: 64
    description: That hold it.
    items:
      type: object
      required: [namespace, name, uid]
      properties:
        namespace: {type: string, maxLength: 63}
        name: {type: string, maxLength: 253}
        uid: {type: string, maxLength: 63}
{{- end }}

// SPDX-License-Identifier: Apache-2.0
// What a tenant may be: its name (also its namespace), its quota, and the rules that both must
// keep. Pure: JSON in, checked values out; texts are borrowed from the JSON.
#pragma once

#include "policy/schema.h"

// Short enough that TENANT.NAME of a request still fits a label value (63).
enum { TENANT_NAME_MAX = 30 };

struct tenant_quota {
	int64_t gpus; // GPUs held at once; 0: none may be held
	int64_t cpu_milli;
	int64_t memory_bytes;
	int64_t pods;
};

struct tenant_spec {
	struct str name;
	struct str display_name; // may be empty
	struct tenant_quota quota;
};

extern const struct schema tenant_quota_schema; // {"gpus","cpu","memory","pods"}
extern const struct schema tenant_schema;       // body of a new tenant

// A DNS label of at most TENANT_NAME_MAX, not reserved (default, kube-*, gpuaas-*, openshift-*).
MUST_USE err_status tenant_check_name(struct str name, struct err *err);
MUST_USE err_status tenant_parse(const json_t *body, struct tenant_spec *ret_spec,
				 struct schema_fault *ret_fault, struct err *err);
// Members that are absent keep the value of ret_quota; the object has passed the schema.
void tenant_quota_merge(const json_t *object, struct tenant_quota *ret_quota);
struct tenant_quota tenant_quota_default(void);

// SPDX-License-Identifier: Apache-2.0
// What a GPU request may ask for, checked in two steps: its shape alone (unknown members, types,
// ranges), then against what the installation has, so that the impossible is refused at once
// with what exists, and never waits for ever. Pure; texts are borrowed from the JSON.
#pragma once

#include "policy/schema.h"
#include "policy/tenant.h"

enum {
	REQUEST_NAME_MAX = 32,
	REQUEST_MODELS_MAX = 16,
	REQUEST_ARGS_MAX = 64,
	REQUEST_ENV_MAX = 64,
	REQUEST_ID_BYTES = TENANT_NAME_MAX + 1 + REQUEST_NAME_MAX + 1,
	INVENTORY_MAX = 256,
	INVENTORY_MIGS_MAX = 128,
	REQUEST_WHOLE_MILLI = 1000, // of one GPU
	REQUEST_GANG_MAX = 1024,    // pods
};

typedef enum request_class {
	REQUEST_INFERENCE,
	REQUEST_TRAINING,
	REQUEST_EXPERIMENT,
} request_class;

struct request_spec {
	struct str name; // may be empty: the server makes one
	request_class class_;
	int64_t gpu_count;      // whole ones; 0: a share
	int64_t gpu_milli;      // of one GPU; 0: whole ones
	int64_t gang;           // pods that start together, each with all of this; 0: it is one pod
	struct str mig_profile; // one MIG device of it in place of GPUs; empty: none
	struct str models[REQUEST_MODELS_MAX]; // any of them, as in gpu/model.h; none: every model
	size_t model_count;
	int64_t gpu_memory_mib; // of one GPU at least, or of the share; 0: any
	int64_t cpu_milli;
	int64_t memory_bytes;
	int64_t duration_s;     // expected; 0: unknown
	int64_t max_duration_s; // ended by force after it
	struct str deadline;    // RFC 3339, by when it is to have ended; empty: none
	struct str image;
	const json_t *command, *args, *env; // borrowed, may be NULL
};

// What one kind of node has; the caller sums up equal ones.
struct inventory_row {
	struct str model;
	int64_t gpus_per_node; // that are given whole
	int64_t gpu_memory_mib;
	int64_t nodes;
	int64_t shared_per_node; // beside the whole ones, that are given in shares
};

// MIG devices of one profile on GPUs of one model.
struct inventory_mig {
	struct str profile, model;
	int64_t offered;              // such devices there are, each by the name of its profile
	int64_t gpus;                 // that could have them
	int64_t slices, board_slices; // for compute; 0: not told
};

struct inventory {
	struct inventory_row rows[INVENTORY_MAX];
	size_t count;
	struct inventory_mig migs[INVENTORY_MIGS_MAX];
	size_t mig_count;
};

extern const struct schema request_schema;

// Shape only.
MUST_USE err_status request_parse(const json_t *body, struct request_spec *ret_spec,
				  struct schema_fault *ret_fault, struct err *err);
// The spec of a GPURequest object, which may come past the server: the same bounds, under the
// object's names. ERR_INVALID names the field.
MUST_USE err_status request_check_object(const json_t *spec, struct err *err);
// A share that is asked for by its memory alone gets the thousandths that this is of the smallest
// GPU that has it, so that quotas count it; without such GPUs it counts as a whole one.
void request_fill_share(struct request_spec *spec, const struct inventory *inventory);
// ERR_UNSUPPORTED when no node could ever run it; the text names what exists. An empty inventory
// (no node has reported yet) refuses nothing.
MUST_USE err_status request_check_possible(const struct request_spec *spec,
					   const struct inventory *inventory, struct err *err);
// Adds to the row of that kind, or a new row; false when the table is full.
MUST_USE bool inventory_add(struct inventory *inventory, const struct inventory_row *row);
// The same of MIG devices.
MUST_USE bool inventory_add_mig(struct inventory *inventory, const struct inventory_mig *mig);

int64_t request_pod_count(const struct request_spec *spec);
// Compute slices of a profile by its name, 0: no profile; and its name as a resource.
uint32_t inventory_mig_slices(struct str profile);
void inventory_mig_resource(struct str profile, char *out, size_t out_bytes);
// What a MIG device is of a GPU at most, as a fraction, on the GPUs that have the profile and are
// of the request's models; their models go into ret_models. Returns how many; 0: there are none.
size_t inventory_mig_part(const struct inventory *inventory, const struct request_spec *spec,
			  struct str ret_models[REQUEST_MODELS_MAX], int64_t ret_part[2]);

const char *request_class_name(request_class class_);
request_class request_class_of(struct str name); // of another name: experiment
// "TENANT.NAME" into out; the id is unique because DNS labels hold no dots.
void request_id_format(struct str tenant, struct str name, char out[REQUEST_ID_BYTES]);
MUST_USE bool request_id_parse(struct str id, struct str *ret_tenant, struct str *ret_name);

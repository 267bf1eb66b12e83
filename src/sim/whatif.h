// SPDX-License-Identifier: Apache-2.0
// gpuaas-sim whatif: one scenario, usually the dump of a live cluster, as it is and with a change,
// side by side. Pure: documents in, documents out. In a dump there are no times of a scenario: all
// that is there begins at the youngest instant it names, and pods run as long as they say
// (gpuaas.io/duration), counted from when they were bound. Documents are jansson's, new references.
#pragma once

#include "base/json.h"

enum { WHATIF_NODES_MAX = 10000, WHATIF_NAMES_MAX = 64 };

struct whatif_change {
	int64_t nodes;                         // that many more
	const char *like;                      // like this one
	const char *removed[WHATIF_NAMES_MAX]; // nodes; their pods wait again
	size_t removed_count;
	const char *limits[WHATIF_NAMES_MAX]; // TENANT=GPUS
	size_t limit_count;
};

// Lists (kubectl get -o json) are taken apart, and times filled in; default_s: how long pods run
// that do not say, -1: for ever. ret_endless counts these.
MUST_USE err_status whatif_prepare(const json_t *documents, int64_t default_s, json_t **ret,
				   size_t *ret_endless, struct err *err);
MUST_USE err_status whatif_apply(json_t *documents, const struct whatif_change *change,
				 struct err *err);

// SPDX-License-Identifier: Apache-2.0
// Keeps this node's ResourceSlice at the API server as it should be: watches the slices of this
// driver and node, writes when what is there says something else (with a new generation of the
// pool), makes it anew when somebody removed it (a starting kubelet removes all), and deletes
// slices of other names that an older version left. One call at a time, at most one write a
// second, again after a failure with growing pauses.
#pragma once

#include "daemons/agent/dra_slice.h"
#include "k8s/client.h"

struct dra_publish;

struct dra_publish_config {
	const char *node;
	void *arg;
	// Fills what there is now but node_uid, generation and has_no_taints; false: not known yet.
	bool (*view)(void *arg, struct dra_view *ret);
};

struct dra_publish_stats {
	uint64_t writes, failures;
	bool is_published; // what is there is what should be
};

MUST_USE err_status dra_publish_new(struct k8s_client *client,
				    const struct dra_publish_config *config,
				    struct dra_publish **ret, struct err *err);
void dra_publish_free(struct dra_publish *publish); // NULL allowed; before the client
// Something may have changed.
void dra_publish_poke(struct dra_publish *publish);
void dra_publish_stats(const struct dra_publish *publish, struct dra_publish_stats *ret);

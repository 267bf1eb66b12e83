// SPDX-License-Identifier: Apache-2.0
// Writes this node's GPUNode and labels by server-side apply: nothing when nothing changed, also
// over a restart, for what the server has is read first; at most one round in a period, again
// after a failure. What others did to it is seen and mended every five minutes. The owner says
// when something may have changed and gives the view at the moment of writing.
#pragma once

#include "daemons/agent/node_object.h"
#include "k8s/client.h"

struct node_writer;

struct node_writer_config {
	const char *node;
	uint64_t period_ns;
	void *arg;
	bool (*view)(void *arg, struct node_view *ret); // false: nothing to say yet
};

struct node_writer_stats {
	uint64_t writes, failures;
};

MUST_USE err_status node_writer_new(struct k8s_client *client,
				    const struct node_writer_config *config,
				    struct node_writer **ret, struct err *err);
void node_writer_free(struct node_writer *writer); // NULL allowed; before the client
void node_writer_poke(struct node_writer *writer);
void node_writer_stats(const struct node_writer *writer, struct node_writer_stats *ret);

// SPDX-License-Identifier: Apache-2.0
// Watches one label of this node, for the name of the device plugin's configuration. Needs list
// and watch on nodes, so it is started only when configurations are chosen by label.
#pragma once

#include "k8s/client.h"

struct node_label;

struct node_label_config {
	const char *node, *label; // borrowed
	void *arg;
	void (*on_value)(void *arg, const char *value); // NULL: the node has no such label
};

MUST_USE err_status node_label_new(struct k8s_client *client,
				   const struct node_label_config *config, struct node_label **ret,
				   struct err *err);
void node_label_free(struct node_label *label); // NULL allowed; before the client

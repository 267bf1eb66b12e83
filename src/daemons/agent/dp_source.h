// SPDX-License-Identifier: Apache-2.0
// Where the device plugin's configuration comes from: one file, or a folder of named ones (a
// mounted config map) from which the node's label chooses, else a default, else the fallbacks
// of upstream's config manager. Looks again every two seconds and when asked; what is broken or
// refused leaves the last good configuration running and says so. The name that was chosen last
// is kept on disk, so that a start without the API server finds it.
#pragma once

#include "daemons/agent/dp_config.h"
#include "sys/loop.h"

struct dp_source;

struct dp_source_config {
	const char *file, *dir;   // at most one; neither: defaults, environment and flags alone
	const char *default_name; // of a file in dir, or NULL
	const char *fallbacks;    // comma list of named, single, empty
	const char *kept_path;    // file with the chosen name
	bool waits_for_label;     // dir, and there is an API server to ask
	const char *const *flags; // DP_OPTIONS_MAX of them, NULL: not given
	void *arg;
	// Takes a configuration that is good in itself; a failure means: the old one stays.
	err_status (*apply)(void *arg, const struct dp_config *config, struct err *err);
};

struct dp_source_stats {
	uint64_t loads, failures;
	bool is_failing; // the newest file is not the one that runs
	bool is_loaded;  // some configuration runs
	char name[64];   // of the file in dir
	char why[400];   // while it fails
};

// Loads at once; a first configuration that is broken is a failure of the start.
MUST_USE err_status dp_source_new(struct loop *loop, const struct dp_source_config *config,
				  struct dp_source **ret, struct err *err);
void dp_source_free(struct dp_source *source); // NULL allowed
// The node's label; NULL: the node has none.
void dp_source_label(struct dp_source *source, const char *name);
void dp_source_look(struct dp_source *source);
void dp_source_stats(const struct dp_source *source, struct dp_source_stats *ret);

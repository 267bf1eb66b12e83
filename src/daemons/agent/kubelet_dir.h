// SPDX-License-Identifier: Apache-2.0
// Watches the kubelet's device plugin folder: kubelet.sock made anew (a restarted kubelet), our
// own sockets gone (a starting kubelet deletes all), the checkpoint file replaced. By inotify,
// and by looking each second in case inotify is not to be had or the folder is replaced.
#pragma once

#include "sys/loop.h"

struct kubelet_dir;

struct kubelet_dir_config {
	const char *dir;
	void *arg;
	loop_fn *on_kubelet;    // kubelet.sock is there and is not the one we knew
	loop_fn *on_any;        // something may have changed: look after your own files
	loop_fn *on_checkpoint; // may have changed
};

MUST_USE err_status kubelet_dir_new(struct loop *loop, const struct kubelet_dir_config *config,
				    struct kubelet_dir **ret, struct err *err);
void kubelet_dir_free(struct kubelet_dir *dir); // NULL allowed
bool kubelet_dir_has_inotify(const struct kubelet_dir *dir);

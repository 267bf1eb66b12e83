// SPDX-License-Identifier: Apache-2.0
// Volumes that a pod mounts, as far as they decide where it may run. Part of struct sched_spec;
// all texts and lists lie where that one's do.
#pragma once

#include "base/str.h"

struct sched_claim_ref { // a PersistentVolumeClaim
	struct str namespace_, name;
	bool is_ephemeral;    // made for this pod
	struct str owner_uid; // which then owns it
};
struct sched_disk {  // mounted directly; one pod on a node may write it
	bool is_rbd; // else iSCSI
	struct str id;
	struct str *monitors; // of RBD: the same disk if one is shared
	size_t monitor_count;
	bool is_read_only;
};

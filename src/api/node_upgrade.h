// SPDX-License-Identifier: Apache-2.0
// The upgrade of a node as it stands in the Node object: read from its annotation, and the patch
// that writes state and cordon together. The patch names the version that was read, so that of
// two writers one is told to look again. Pure.
#pragma once

#include "base/json.h"
#include "policy/upgrade.h"

MUST_USE bool node_upgrade_read(const json_t *host, struct upgrade *ret); // false: none
// Merge patches; new references.
json_t *node_upgrade_patch(const json_t *host, const struct upgrade *upgrade);
json_t *node_upgrade_end_patch(const json_t *host, const struct upgrade *upgrade);
bool node_is_cordoned(const json_t *host);

// SPDX-License-Identifier: Apache-2.0
// Whether the MPS control daemon of a resource serves clients: what it keeps in its folder
// (ROOT/RESOURCE/pipe, as the daemon set of NVIDIA's device plugin lays it out) is there and
// somebody listens behind it. Says nothing to the daemon and never waits for it.
#pragma once

#include "base/str.h"

MUST_USE bool mps_is_ready(const char *root, const char *resource);

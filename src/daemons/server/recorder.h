// SPDX-License-Identifier: Apache-2.0
// Writes the last known state of requests that ended or whose objects are gone into the history
// in SQL, a few times a second in one transaction. What a crash loses is written anew when the
// objects are listed again. Loop thread only.
#pragma once

#include "api/objects.h"

struct recorder;

struct recorder *recorder_new(struct loop *loop, struct sql *sql);
void recorder_free(struct recorder *recorder); // writes what is pending; NULL allowed
// object: the request as it was last known.
void recorder_put(struct recorder *recorder, const json_t *request, bool is_gone);

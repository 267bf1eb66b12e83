// SPDX-License-Identifier: Apache-2.0
// Questions of the server to the scheduler's own port. What it shows there is of all tenants: who
// passes it on checks first whose it is.
#pragma once

#include "api/rest.h"
#include "net/http_client.h"

// GET, or the method that is named, with the header that lets the server in and 3 s of patience;
// the rest is the caller's. api->scheduler is there.
void scheduler_ask(const struct api *api, const struct http_call_request *question);

// SPDX-License-Identifier: Apache-2.0
// The JSON objects of the API, as callers send them and as they are answered: the one place
// where their members are named. Bodies are checked against these tables and OpenAPI is made
// from them. Lists are always {"items": [...], "next_page_token": "..." or absent}.
#pragma once

#include "policy/schema.h"

// Bodies; a new tenant is policy/tenant.h tenant_schema, a request policy/request.h
// request_schema.
extern const struct schema shape_tenant_update;
extern const struct schema shape_member_put;
extern const struct schema shape_token_create;
extern const struct schema shape_document; // price book, assets, pools: as in their files

// Answers.
extern const struct schema shape_whoami;
extern const struct schema shape_tenant;
extern const struct schema shape_queue;
extern const struct schema shape_member;
extern const struct schema shape_token;
extern const struct schema shape_request;
extern const struct schema shape_explain;
extern const struct schema shape_node;
extern const struct schema shape_cursor_answer;
extern const struct schema shape_checkpoint;
extern const struct schema shape_problem;
extern const struct schema shape_health;

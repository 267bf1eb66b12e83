// SPDX-License-Identifier: Apache-2.0
// The handlers of the route table. Each gets an authenticated, limited and, where the table can
// tell the tenant, authorized call with a checked body, and ends it exactly once, now or later,
// by one of the rest_answer functions.
#pragma once

#include "api/routes.h"

route_fn handle_healthz, handle_readyz, handle_metrics, handle_openapi, handle_whoami;
route_fn handle_tenant_create, handle_tenant_list, handle_tenant_get, handle_tenant_update,
	handle_tenant_delete;
route_fn handle_member_list, handle_member_put, handle_member_delete;
route_fn handle_window_list, handle_window_create, handle_window_delete;
route_fn handle_token_create, handle_token_list, handle_token_delete;
route_fn handle_request_create, handle_request_list, handle_request_get, handle_request_cancel,
	handle_request_explain, handle_request_logs, handle_pod_explain;
route_fn handle_node_list, handle_node_get, handle_node_upgrade, handle_node_upgrade_end;
route_fn handle_quota_check, handle_queue_list;
route_fn handle_usage_push, handle_event_export, handle_event_import, handle_bill_get;
route_fn handle_document_get, handle_document_put; // prices, assets, pools by the route's resource
route_fn handle_audit_export, handle_audit_checkpoint;

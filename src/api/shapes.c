// SPDX-License-Identifier: Apache-2.0
#include "api/shapes.h"

#include "policy/request.h"
#include "policy/tenant.h"
#include "policy/tenant_queue.h"
#include "policy/tenant_window.h"

static const char *const tenant_roles[] = { "tenant-admin", "member", NULL };
static const char *const all_roles[] = { "platform-admin", "tenant-admin", "member", "agent",
					 NULL };

static const struct schema_field tenant_update_fields[] = {
	{ "display_name", SCHEMA_TEXT, .max = 100, .doc = "Name for people." },
	{ "quota", SCHEMA_OBJECT, .object = &tenant_quota_schema,
	  .doc = "New limits of the tenant." },
	{ "queue", SCHEMA_OBJECT, .nullable = true, .object = &tenant_queue_schema,
	  .doc = "Settings of its queue; null takes it away." },
	{ "windows", SCHEMA_OBJECTS, .object = &tenant_window_schema, .max = TENANT_WINDOWS_MAX,
	  .doc = "GPUs reserved for it for a time; the whole list." },
};
const struct schema shape_tenant_update = {
	.name = "TenantUpdate",
	.doc = "What is named is changed, the rest stays. If-Match makes it conditional.",
	SCHEMA_FIELDS(tenant_update_fields)
};

static const struct schema_field member_put_fields[] = {
	{ "user", SCHEMA_TEXT, .required = true, .min = 1, .max = 128,
	  .doc = "Name of the person or program." },
	{ "role", SCHEMA_TEXT, .required = true, .min = 1, .values = tenant_roles,
	  .doc = "Role in this tenant." },
};
const struct schema shape_member_put = {
	.name = "MemberPut",
	.doc = "A member of a tenant; the same user again changes the role.",
	SCHEMA_FIELDS(member_put_fields)
};

static const struct schema_field token_create_fields[] = {
	{ "user", SCHEMA_TEXT, .min = 1, .max = 128,
	  .doc = "Whom the token speaks for: a member of the tenant; for agents the node's name. "
		 "Absent: the caller." },
	{ "tenant", SCHEMA_LABEL,
	  .doc = "Tenant of the token. Absent: the caller's; none for platform-admin and agent." },
	{ "role", SCHEMA_TEXT, .required = true, .min = 1, .values = all_roles,
	  .doc = "Rights of the token; a tenant admin makes tenant-admin and member only." },
	{ "expires_in", SCHEMA_DURATION, .min = 60, .max = 366 * 86400,
	  .doc = "Life of the token, by default 90d." },
	{ "note", SCHEMA_TEXT, .max = 200, .doc = "What it is for." },
};
const struct schema shape_token_create = { .name = "TokenCreate",
					   .doc = "A new access token.",
					   SCHEMA_FIELDS(token_create_fields) };

const struct schema shape_document = {
	.name = "Document",
	.doc = "A whole document in the form of its offline file (prices.json, assets.json, "
	       "pools.json); it is checked whole and becomes the current version."
};

static const struct schema_field whoami_fields[] = {
	{ "user", SCHEMA_TEXT, .required = true, .doc = "Whom the token speaks for." },
	{ "role", SCHEMA_TEXT, .required = true, .values = all_roles, .doc = "Rights." },
	{ "tenant", SCHEMA_TEXT, .doc = "Tenant of the token, absent for platform-admin." },
	{ "token_id", SCHEMA_TEXT, .doc = "Id of the token, for revoking it." },
	{ "expires", SCHEMA_TIME, .doc = "End of the token." },
	{ "server_version", SCHEMA_TEXT, .doc = "Version of the server." },
};
const struct schema shape_whoami = { .name = "WhoAmI",
				     .doc = "Who the caller is here.",
				     SCHEMA_FIELDS(whoami_fields) };

static const struct schema_field condition_fields[] = {
	{ "type", SCHEMA_TEXT, .required = true, .doc = "CamelCase, for example Ready." },
	{ "status", SCHEMA_TEXT, .required = true, .doc = "True, False or Unknown." },
	{ "reason", SCHEMA_TEXT, .required = true, .doc = "CamelCase, for programs." },
	{ "message", SCHEMA_TEXT, .doc = "For people." },
	{ "lastTransitionTime", SCHEMA_TIME, .doc = "When status changed last." },
	{ "observedGeneration", SCHEMA_INT, .doc = "Generation it was seen at." },
};
static const struct schema condition_schema = { .name = "Condition",
						.doc = "One condition, as in Kubernetes.",
						SCHEMA_FIELDS(condition_fields) };

static const struct schema_field usage_now_fields[] = {
	{ "gpus", SCHEMA_INT, .required = true,
	  .doc = "GPUs of requests that were let through and have not ended." },
	{ "gpu_milli", SCHEMA_INT,
	  .doc = "Thousandths of GPUs that their shares hold; absent: none." },
	{ "waiting_gpus", SCHEMA_INT, .required = true,
	  .doc = "GPUs of requests that wait for quota." },
	{ "requests", SCHEMA_INT, .required = true, .doc = "Requests that have not ended." },
};
static const struct schema usage_now_schema = { .name = "TenantUsage",
						.doc = "What the tenant holds now.",
						SCHEMA_FIELDS(usage_now_fields) };

static const struct schema_field tenant_fields[] = {
	{ "name", SCHEMA_LABEL, .required = true, .doc = "Name, also of its namespace." },
	{ "display_name", SCHEMA_TEXT, .doc = "Name for people." },
	{ "quota", SCHEMA_OBJECT, .object = &tenant_quota_schema, .doc = "Limits." },
	{ "queue", SCHEMA_OBJECT, .object = &tenant_queue_schema, .doc = "Its queue." },
	{ "windows", SCHEMA_OBJECTS, .object = &tenant_window_schema,
	  .doc = "GPUs reserved for it for a time." },
	{ "usage", SCHEMA_OBJECT, .object = &usage_now_schema, .doc = "What it holds now." },
	{ "state", SCHEMA_TEXT, .required = true, .doc = "Pending, Ready or Deleting." },
	{ "conditions", SCHEMA_OBJECTS, .object = &condition_schema,
	  .doc = "Why it is in this state." },
	{ "created", SCHEMA_TIME, .doc = "When it was made." },
};
static const struct schema_field queue_model_fields[] = {
	{ "model", SCHEMA_TEXT, .required = true, .doc = "As its settings name it." },
	{ "guaranteed", SCHEMA_ANY, .doc = "GPUs, a number; in force." },
	{ "limit", SCHEMA_ANY, .doc = "GPUs; null: none." },
	{ "allocated", SCHEMA_ANY, .doc = "GPUs that it and those below it hold." },
	{ "offered", SCHEMA_ANY, .doc = "GPUs of the model in the cluster; 0: no node has it." },
};
static const struct schema queue_model_schema = { .name = "QueueModel",
						  .doc = "What a queue has of one GPU model.",
						  SCHEMA_FIELDS(queue_model_fields) };
static const struct schema_field queue_row_fields[] = {
	{ "tenant", SCHEMA_TEXT, .required = true,
	  .doc = "Name; ~others: all namespaces without a queue." },
	{ "parent", SCHEMA_TEXT, .doc = "Empty: at the top." },
	{ "depth", SCHEMA_INT, .doc = "1: at the top." },
	{ "weight", SCHEMA_INT, .doc = "Of what is beyond all guarantees." },
	{ "guaranteed", SCHEMA_ANY, .doc = "GPUs, a number; in force." },
	{ "limit", SCHEMA_ANY, .doc = "GPUs; null: none." },
	{ "allocated", SCHEMA_ANY, .doc = "GPUs that it and those below it hold." },
	{ "deserved", SCHEMA_ANY,
	  .doc = "GPUs that it should have now, by guarantees, weights and what all want." },
	{ "borrowed", SCHEMA_ANY, .doc = "GPUs that it holds beyond its guarantee." },
	{ "waiting", SCHEMA_ANY, .doc = "GPUs that its waiting pods and those below ask for." },
	{ "waiting_pods", SCHEMA_INT, .doc = "Its own." },
	{ "used_gpu_hours", SCHEMA_ANY,
	  .doc = "Remembered use; half is forgotten each half-life." },
	{ "half_life_s", SCHEMA_INT, .doc = "Seconds." },
	{ "share", SCHEMA_ANY,
	  .doc = "Its part of what it and its siblings had, over the part it should have: 1 is "
		 "its share, who is below goes first." },
	{ "by_model", SCHEMA_OBJECTS, .object = &queue_model_schema,
	  .doc = "Of GPU models for which it has settings." },
	{ "problem", SCHEMA_TEXT,
	  .doc = "Why its pods wait: settings that cannot hold; or what is likely a mistake." },
};
const struct schema shape_queue = { .name = "Queue",
				    .doc = "What a tenant's queue has now.",
				    SCHEMA_FIELDS(queue_row_fields) };

const struct schema shape_tenant = { .name = "Tenant",
				     .doc = "A team with its quota.",
				     SCHEMA_FIELDS(tenant_fields) };

static const struct schema_field member_fields[] = {
	{ "tenant", SCHEMA_LABEL, .required = true, .doc = "Tenant." },
	{ "user", SCHEMA_TEXT, .required = true, .doc = "Name." },
	{ "role", SCHEMA_TEXT, .required = true, .values = tenant_roles, .doc = "Role." },
	{ "created", SCHEMA_TIME, .doc = "Since when." },
};
const struct schema shape_member = { .name = "Member",
				     .doc = "A member of a tenant.",
				     SCHEMA_FIELDS(member_fields) };

static const struct schema_field token_fields[] = {
	{ "id", SCHEMA_TEXT, .required = true, .doc = "Id, not secret." },
	{ "token", SCHEMA_TEXT,
	  .doc = "The secret itself: only in the answer that creates it, never again." },
	{ "user", SCHEMA_TEXT, .required = true, .doc = "Whom it speaks for." },
	{ "role", SCHEMA_TEXT, .required = true, .values = all_roles, .doc = "Rights." },
	{ "tenant", SCHEMA_TEXT, .doc = "Tenant." },
	{ "note", SCHEMA_TEXT, .doc = "What it is for." },
	{ "created", SCHEMA_TIME, .required = true, .doc = "When it was made." },
	{ "created_by", SCHEMA_TEXT, .doc = "Who made it." },
	{ "expires", SCHEMA_TIME, .required = true, .doc = "End." },
	{ "revoked", SCHEMA_TIME, .doc = "When it was revoked." },
	{ "last_used", SCHEMA_TIME, .doc = "Last use, to about ten minutes." },
	{ "state", SCHEMA_TEXT, .required = true, .doc = "active, expired or revoked." },
};
const struct schema shape_token = { .name = "Token",
				    .doc = "An access token.",
				    SCHEMA_FIELDS(token_fields) };

static const struct schema_field request_fields[] = {
	{ "id", SCHEMA_TEXT, .required = true,
	  .doc = "TENANT.NAME; also the pods' label gpuaas.io/request." },
	{ "name", SCHEMA_LABEL, .required = true, .doc = "Name in its tenant, also of the Job." },
	{ "tenant", SCHEMA_LABEL, .required = true, .doc = "Tenant." },
	{ "spec", SCHEMA_OBJECT, .required = true, .object = &request_schema,
	  .doc = "What was asked for." },
	{ "state", SCHEMA_TEXT, .required = true,
	  .doc = "Pending, Running, Succeeded, Failed or Cancelled." },
	{ "reason", SCHEMA_TEXT, .doc = "CamelCase reason of the state, for programs." },
	{ "message", SCHEMA_TEXT, .doc = "The same for people, with what to do." },
	{ "user", SCHEMA_TEXT, .doc = "Who asked." },
	{ "position", SCHEMA_INT,
	  .doc = "Place in the queue for quota, 1 is next; of one that has passed it, and with "
		 "places=true, in the queue for nodes." },
	{ "queue", SCHEMA_ANY,
	  .doc = "With places=true: {\"tenant\",\"below_guarantee\",\"priority\",\"score\","
		 "\"factors\"}, its place among others." },
	{ "estimate", SCHEMA_ANY,
	  .doc = "Cost up to its duration: {\"cost\":\"1.25\",\"currency\":\"EUR\"}; absent "
		 "without a price book." },
	{ "node", SCHEMA_TEXT, .doc = "Node it runs or ran on; of a gang, that of its pod." },
	{ "pod", SCHEMA_TEXT, .doc = "Its pod; of a gang the one that is least far." },
	{ "devices", SCHEMA_TEXTS, .doc = "GPU ids planned for its pod." },
	{ "created", SCHEMA_TIME, .doc = "When it was asked for." },
	{ "scheduled", SCHEMA_TIME, .doc = "When its pod was bound." },
	{ "started", SCHEMA_TIME, .doc = "When its container started." },
	{ "ended", SCHEMA_TIME, .doc = "When it ended." },
	{ "exit_code", SCHEMA_INT, .doc = "Exit code of its container." },
};
const struct schema shape_request = { .name = "Request",
				      .doc = "A GPU request.",
				      SCHEMA_FIELDS(request_fields) };

static const struct schema_field reason_fields[] = {
	{ "code", SCHEMA_TEXT, .required = true, .doc = "CamelCase, one of a closed set." },
	{ "need", SCHEMA_ANY, .doc = "What is asked for." },
	{ "have", SCHEMA_ANY, .doc = "What there is." },
	{ "nodes", SCHEMA_INT, .doc = "How many nodes this holds for." },
	{ "next", SCHEMA_TEXT, .doc = "The smallest change that would help." },
};
static const struct schema reason_schema = { .name = "Reason",
					     .doc = "One reason why it waits.",
					     SCHEMA_FIELDS(reason_fields) };

static const struct schema_field explain_fields[] = {
	{ "state", SCHEMA_TEXT, .required = true,
	  .doc = "fits, waits, refused, starting, running or ended." },
	{ "node", SCHEMA_TEXT, .doc = "Where it runs, ran or is starting." },
	{ "devices", SCHEMA_ANY, .doc = "Ids of the GPUs that the scheduler planned for it." },
	{ "why", SCHEMA_ANY,
	  .doc = "{\"term\",\"next\",\"own\",\"other\",\"parts\"}: the term by which its node was "
		 "better than the next best, and both values; less is better." },
	{ "position", SCHEMA_INT, .doc = "Place in the queue." },
	{ "estimate", SCHEMA_ANY, .doc = "{\"from\",\"to\"}: when it may start." },
	{ "reserved", SCHEMA_ANY,
	  .doc = "{\"node\",\"from\"}: node kept for the head of the queue, and from when it will "
		 "fit there as far as running work says how long it lasts." },
	{ "queue", SCHEMA_ANY,
	  .doc = "{\"tenant\",\"below_guarantee\",\"priority\",\"score\",\"factors\"}: its place "
		 "among "
		 "others." },
	{ "load", SCHEMA_ANY,
	  .doc = "Of GPUs given in shares: how loaded each was when it was chosen." },
	{ "preemption", SCHEMA_ANY,
	  .doc = "{\"node\",\"leaving\",\"evictedBy\",\"goesOnAt\",\"queuedSince\"}: node kept "
		 "for it and how many pods leave that first; for whom it has to leave; the node "
		 "where room is kept for it, if it is moved; since when it is queued, if it "
		 "replaces an evicted pod." },
	{ "reasons", SCHEMA_OBJECTS, .required = true, .object = &reason_schema,
	  .doc = "All reasons that hold now." },
};
const struct schema shape_explain = { .name = "Explain",
				      .doc = "Why something waits or would.",
				      SCHEMA_FIELDS(explain_fields) };

static const struct schema_field node_fields[] = {
	{ "name", SCHEMA_TEXT, .required = true, .doc = "Name of the node." },
	{ "ready", SCHEMA_BOOL, .doc = "Whether the node takes work." },
	{ "model", SCHEMA_TEXT, .doc = "GPU model." },
	{ "gpus", SCHEMA_INT, .doc = "GPUs of the node." },
	{ "healthy_gpus", SCHEMA_INT, .doc = "Of them healthy." },
	{ "held_gpus", SCHEMA_INT, .doc = "Of them held by requests." },
	{ "memory_mib", SCHEMA_INT, .doc = "Memory of one GPU." },
	{ "driver", SCHEMA_TEXT, .doc = "Driver version." },
	{ "devices", SCHEMA_ANY, .doc = "The GPUs, as in GPUNode." },
	{ "cuda", SCHEMA_TEXT, .doc = "Newest CUDA of the driver; platform admins." },
	{ "kubelet", SCHEMA_TEXT, .doc = "Version of the kubelet; platform admins." },
	{ "container_runtime", SCHEMA_TEXT, .doc = "Name and version; platform admins." },
	{ "container_toolkit", SCHEMA_TEXT, .doc = "Version; platform admins." },
	{ "agent", SCHEMA_TEXT, .doc = "Version of the node's agent; platform admins." },
	{ "conditions", SCHEMA_ANY, .doc = "As in GPUNode; platform admins." },
	{ "version_problems", SCHEMA_ANY,
	  .doc = "What is known against its versions, with sources; platform admins." },
	{ "schedulable", SCHEMA_BOOL, .doc = "Whether the node takes new pods; platform admins." },
	{ "upgrade", SCHEMA_ANY, .doc = "Change of the driver and its phase; platform admins." },
};
const struct schema shape_node = { .name = "Node",
				   .doc = "A GPU node.",
				   SCHEMA_FIELDS(node_fields) };

static const struct schema_field cursor_fields[] = {
	{ "boot", SCHEMA_TEXT, .required = true, .doc = "Boot id of the journal." },
	{ "seq", SCHEMA_INT, .required = true, .doc = "All events up to this one are durable." },
};
static const struct schema cursor_schema = { .name = "Cursor",
					     .doc = "A place in a journal.",
					     SCHEMA_FIELDS(cursor_fields) };
static const struct schema_field cursor_answer_fields[] = {
	{ "cursor", SCHEMA_OBJECT, .required = true, .object = &cursor_schema,
	  .doc = "How far the server has it." },
};
const struct schema shape_cursor_answer = { .name = "UsageAnswer",
					    .doc = "What a node's agent may forget.",
					    SCHEMA_FIELDS(cursor_answer_fields) };

static const struct schema_field checkpoint_fields[] = {
	{ "version", SCHEMA_INT, .required = true, .doc = "Form of the checkpoint." },
	{ "chain", SCHEMA_TEXT, .required = true, .doc = "Id of the chain." },
	{ "records", SCHEMA_INT, .required = true, .doc = "Records it covers." },
	{ "head", SCHEMA_TEXT, .required = true, .doc = "Hash of the last record, hex." },
	{ "time", SCHEMA_TIME, .required = true, .doc = "When it was signed." },
	{ "public_key", SCHEMA_TEXT, .required = true, .doc = "ed25519 key, hex." },
	{ "signature", SCHEMA_TEXT, .required = true, .doc = "Signature, hex." },
};
const struct schema shape_checkpoint = {
	.name = "AuditCheckpoint",
	.doc = "Signed statement of the audit log's length and head.",
	SCHEMA_FIELDS(checkpoint_fields)
};

static const struct schema_field problem_fields[] = {
	{ "type", SCHEMA_TEXT, .required = true, .doc = "urn:gpuaas:problem:CODE." },
	{ "title", SCHEMA_TEXT, .required = true, .doc = "Text of the HTTP status." },
	{ "status", SCHEMA_INT, .required = true, .doc = "HTTP status." },
	{ "code", SCHEMA_TEXT, .required = true, .doc = "Stable name, for programs." },
	{ "detail", SCHEMA_TEXT, .required = true, .doc = "What is wrong and what to do." },
	{ "field", SCHEMA_TEXT, .doc = "Path of the member that is wrong." },
	{ "request_id", SCHEMA_TEXT, .required = true,
	  .doc = "Id of this call in logs and audit." },
};
const struct schema shape_problem = { .name = "Problem",
				      .doc = "RFC 9457 problem details.",
				      SCHEMA_FIELDS(problem_fields) };

static const struct schema_field health_fields[] = {
	{ "status", SCHEMA_TEXT, .required = true, .doc = "ok, or what is not." },
};
const struct schema shape_health = { .name = "Health",
				     .doc = "Whether the server works.",
				     SCHEMA_FIELDS(health_fields) };

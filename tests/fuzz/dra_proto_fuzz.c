// SPDX-License-Identifier: Apache-2.0
// What the kubelet says to the driver of claims, claims as the API server tells them, and the file
// of prepared claims.
#include "daemons/agent/dra_claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct dra_claim claims[DRA_CLAIMS_MAX];

static void check_table(struct str text)
{
	AUTO(buf_done) struct buf out = { 0 };
	size_t count = 0, again = 0;
	if (dra_table_read(text, claims, &count, NULL) != ERR_OK)
		return;
	dra_table_put(&out, claims, count);
	err_status status = dra_table_read(buf_str(&out), claims, &again, NULL);
	ASSERT(status == ERR_OK && again == count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(arena_freep) struct arena *arena = arena_new(4 << 20);
	struct str message = { (const char *)data, size };
	const struct dra_ref ref = { STR("team"), STR("u1"), STR("one") };
	struct dra_refs refs = { 0 };
	struct dra_claim claim;
	struct str error = STR("");
	bool is_registered = false;
	if (dra_read_refs(arena, message, &refs, NULL) == ERR_OK) {
		ASSERT(refs.count <= DRA_REFS_MAX);
		for (size_t i = 0; i < refs.count; i++)
			ASSERT(str_is_dns_label(refs.items[i].uid));
	}
	if (dra_read_status(message, &is_registered, &error, NULL) == ERR_OK)
		ASSERT(str_is_utf8(error));
	if (dra_claim_read(message, &ref, "node1", &claim, NULL) == ERR_OK)
		ASSERT(claim.count > 0 && claim.count <= GPU_MAX);
	check_table(message);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/dra_claim.h"

#include "base/json.h"
#include "daemons/agent/dra_slice.h"

#include <stdio.h>

static bool copy(char *to, size_t to_bytes, struct str from)
{
	if (from.len >= to_bytes)
		return false;
	memcpy(to, from.data, from.len);
	to[from.len] = '\0';
	return true;
}

// A toleration of the taint of GPUs that are not healthy, or of all taints.
static bool tolerates(const json_t *result)
{
	const json_t *list = json_at(result, "tolerations");
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str key = json_text(json_array_get(list, i), "key");
		if (key.len == 0 || str_eq_c(key, DRA_TAINT_UNHEALTHY))
			return true;
	}
	return false;
}

static err_status take_result(const json_t *result, const char *pool, struct dra_claim *claim,
			      struct err *err)
{
	struct str device = json_text(result, "device"), request = json_text(result, "request");
	if (!str_eq_c(json_text(result, "pool"), pool))
		return err_set(err, ERR_INVALID,
			       "device " STR_FMT " is of pool " STR_FMT ", this node's is %s",
			       STR_ARG(device), STR_ARG(json_text(result, "pool")), pool);
	if (json_bool(result, "adminAccess", false) || json_text(result, "shareID").len > 0)
		return err_set(err, ERR_UNSUPPORTED,
			       "device " STR_FMT ": only whole GPUs are given, without access as "
			       "an administrator",
			       STR_ARG(device));
	if (claim->count == GPU_MAX)
		return err_set(err, ERR_LIMIT, "more than %d devices", GPU_MAX);
	struct dra_device *to = &claim->devices[claim->count];
	// Of a request with alternatives the kubelet knows the name of the request alone.
	size_t slash = str_find_byte(request, '/', 0);
	if (slash != SIZE_MAX)
		request = str_slice(request, 0, slash);
	if (!dra_device_uuid(device, to->uuid) || !copy(to->request, sizeof to->request, request))
		return err_set(err, ERR_INVALID, "device " STR_FMT " is none of this driver",
			       STR_ARG(device));
	for (size_t i = 0; i < claim->count; i++) {
		if (strcmp(claim->devices[i].uuid, to->uuid) == 0)
			return err_set(err, ERR_INVALID, "device " STR_FMT " is allocated twice",
				       STR_ARG(device));
	}
	to->tolerates = tolerates(result);
	claim->count++;
	return ERR_OK;
}

static err_status check_config(const json_t *root, struct err *err)
{
	const json_t *list = json_at(root, "status.allocation.devices.config");
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str driver = json_text(json_array_get(list, i), "opaque.driver");
		if (str_eq_c(driver, DRA_DRIVER))
			return err_set(err, ERR_UNSUPPORTED,
				       DRA_DRIVER " takes no configuration; remove it from the "
						  "claim or its class");
	}
	return ERR_OK;
}

static void take_pod(const json_t *root, struct dra_claim *claim)
{
	const json_t *list = json_at(root, "status.reservedFor");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		if (str_eq_c(json_text(entry, "resource"), "pods") &&
		    copy(claim->pod_uid, sizeof claim->pod_uid, json_text(entry, "uid")) &&
		    copy(claim->pod, sizeof claim->pod, json_text(entry, "name")))
			return;
	}
	claim->pod_uid[0] = claim->pod[0] = '\0';
}

err_status dra_claim_read(struct str text, const struct dra_ref *ref, const char *pool,
			  struct dra_claim *ret, struct err *err)
{
	struct err local;
	err = err == NULL ? &local : err;
	AUTO(json_decrefp) json_t *root = NULL;
	struct dra_claim claim = { 0 };
	if (json_parse(text, &root, err) != ERR_OK)
		return err_wrap(err, "claim");
	if (!str_eq(json_text(root, "metadata.uid"), ref->uid))
		return err_set(err, ERR_CONFLICT, "the claim of that name is another one now");
	const json_t *results = json_at(root, "status.allocation.devices.results");
	if (!json_is_array(results))
		return err_set(err, ERR_CONFLICT, "the claim is not allocated");
	bool fits = copy(claim.uid, sizeof claim.uid, ref->uid) &&
		    copy(claim.namespace_, sizeof claim.namespace_, ref->namespace_) &&
		    copy(claim.name, sizeof claim.name, ref->name);
	if (!fits)
		return err_set(err, ERR_LIMIT, "name of the claim is too long");
	if (check_config(root, err) != ERR_OK)
		return err->status;
	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *result = json_array_get(results, i);
		if (!str_eq_c(json_text(result, "driver"), DRA_DRIVER))
			continue;
		if (take_result(result, pool, &claim, err) != ERR_OK)
			return err->status;
	}
	if (claim.count == 0)
		return err_set(err, ERR_INVALID, "the claim has no device of " DRA_DRIVER);
	take_pod(root, &claim);
	*ret = claim;
	return ERR_OK;
}

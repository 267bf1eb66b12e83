// SPDX-License-Identifier: Apache-2.0
#include "sched/policy_file.h"

#include "base/json.h"
#include "base/yaml.h"

static int index_of(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return -1;
}

static err_status read_row(const char *kind, json_t *row, int32_t *weights, struct err *err)
{
	const char *name;
	json_t *value;
	if (!json_is_object(row))
		return err_set(err, ERR_INVALID, "weights.%s: write feature: number", kind);
	json_object_foreach(row, name, value)
	{
		int feature = index_of(SCORE_FEATURE_NAMES, SCORE_FEATURES, name);
		if (feature < 0)
			return err_set(err, ERR_INVALID,
				       "weights.%s.%.40s is no feature; the first is %s", kind,
				       name, SCORE_FEATURE_NAMES[0]);
		if (!json_is_integer(value) || json_integer_value(value) > SCORE_WEIGHT_MAX ||
		    json_integer_value(value) < -SCORE_WEIGHT_MAX)
			return err_set(err, ERR_INVALID,
				       "weights.%s.%s: write a whole number from %d to %d", kind,
				       name, -SCORE_WEIGHT_MAX, SCORE_WEIGHT_MAX);
		weights[feature] = (int32_t)json_integer_value(value);
	}
	return ERR_OK;
}

err_status policy_file_parse(struct str text, struct score_policy *ret, struct err *err)
{
	static const char *const KEYS[] = { "base", "weights", NULL };
	AUTO(json_decrefp) json_t *json = NULL;
	struct score_policy policy = { .is_level = false };
	const char *kind;
	json_t *row;
	if (yaml_parse(text, &json, err) != ERR_OK || json_only_keys(json, KEYS, err) != ERR_OK)
		return err->status;
	if (json_at(json, "base") != NULL && !score_policy_find(json_text(json, "base"), &policy))
		return err_set(err, ERR_INVALID, "base: name a built-in policy, such as default");
	if (json_at(json, "weights") != NULL && !json_is_object(json_at(json, "weights")))
		return err_set(err, ERR_INVALID, "weights: write them by kind of pod");
	if (policy.is_level && json_object_size(json_at(json, "weights")) > 0)
		return err_set(err, ERR_INVALID,
			       "weights: the policy fgd has none; leave them or base out");
	json_object_foreach(json_at(json, "weights"), kind, row)
	{
		int i = index_of(SCORE_KIND_NAMES, SCORE_KINDS, kind);
		if (i < 0)
			return err_set(err, ERR_INVALID,
				       "weights.%.40s: kinds are cpu, share, one and many", kind);
		if (read_row(kind, row, policy.weights[i], err) != ERR_OK)
			return err->status;
	}
	*ret = policy;
	return ERR_OK;
}

void policy_file_format(const struct score_policy *policy, struct buf *out)
{
	buf_put_c(out, "weights:\n");
	for (int i = 0; i < SCORE_KINDS; i++) {
		buf_printf(out, "  %s:\n", SCORE_KIND_NAMES[i]);
		for (int k = 0; k < SCORE_FEATURES; k++)
			buf_printf(out, "    %s: %d\n", SCORE_FEATURE_NAMES[k],
				   (int)policy->weights[i][k]);
	}
}

// SPDX-License-Identifier: Apache-2.0
#include "billing/weights.h"

#include "billing/big.h"
#include "billing/slots.h"

#include <stdlib.h>

static const wide SUM_MAX = (wide)1 << 62; // so that an amount times a weight fits 128 bits

static err_status no_memory(struct err *err)
{
	return err_set(err, ERR_LIMIT, "no memory to split an amount");
}

err_status weights_reset(struct weights *weights, size_t party_count, struct err *err)
{
	weights->class_count = weights->last = 0;
	weights->party_count = party_count;
	if (party_count <= weights->party_cap)
		return ERR_OK;
	for (size_t i = 0; i < weights->class_made; i++) {
		wide *nums = realloc(weights->classes[i].nums, party_count * sizeof *nums);
		if (nums == NULL)
			return no_memory(err);
		weights->classes[i].nums = nums;
	}
	weights->party_cap = party_count;
	return ERR_OK;
}

void weights_done(struct weights *weights)
{
	for (size_t i = 0; i < weights->class_made; i++)
		free(weights->classes[i].nums);
	free(weights->classes);
	*weights = (struct weights){ 0 };
}

static struct weights_class *add_class(struct weights *weights, wide den)
{
	if (!slots_room(&weights->classes, &weights->class_cap, weights->class_made,
			sizeof *weights->classes))
		return NULL;
	struct weights_class *class = &weights->classes[weights->class_count];
	if (weights->class_count == weights->class_made) {
		class->nums = malloc(max_size(weights->party_cap, 1) * sizeof *class->nums);
		if (class->nums == NULL)
			return NULL;
		weights->class_made++;
	}
	class->den = den;
	memset(class->nums, 0, weights->party_count * sizeof *class->nums);
	weights->class_count++;
	return class;
}

// All parties of one segment have the same denominator, so the last used is tried first.
static struct weights_class *class_of(struct weights *weights, wide den)
{
	if (weights->last < weights->class_count && weights->classes[weights->last].den == den)
		return &weights->classes[weights->last];
	size_t i = 0;
	while (i < weights->class_count && weights->classes[i].den != den)
		i++;
	weights->last = i;
	return i < weights->class_count ? &weights->classes[i] : add_class(weights, den);
}

err_status weights_add(struct weights *weights, size_t party, wide num, wide den, struct err *err)
{
	ASSERT(party < weights->party_count && num >= 0 && den > 0);
	struct weights_class *class = class_of(weights, den);
	if (class == NULL)
		return no_memory(err);
	if (__builtin_add_overflow(class->nums[party], num, &class->nums[party]))
		return err_set(err, ERR_LIMIT, "weights of a split pass 128 bits");
	return ERR_OK;
}

err_status weights_merge(struct weights *weights, const struct weights *others,
			 const uint32_t *to_party, struct err *err)
{
	for (size_t i = 0; i < others->class_count; i++) {
		for (size_t party = 0; party < others->party_count; party++) {
			wide num = others->classes[i].nums[party];
			if (num == 0)
				continue;
			err_status status = weights_add(weights, to_party[party], num,
							others->classes[i].den, err);
			if (status != ERR_OK)
				return status;
		}
	}
	return ERR_OK;
}

bool weights_is_zero(const struct weights *weights, size_t party)
{
	for (size_t i = 0; i < weights->class_count; i++)
		if (weights->classes[i].nums[party] != 0)
			return false;
	return true;
}

// Least common multiple of the denominators; 0 when it passes SUM_MAX.
static wide common_den(const struct weights *weights)
{
	wide common = 1;
	for (size_t i = 0; i < weights->class_count; i++) {
		wide den = weights->classes[i].den;
		if (__builtin_mul_overflow(common / money_gcd(common, den), den, &common) ||
		    common > SUM_MAX)
			return 0;
	}
	return common;
}

// All weights as whole numbers over the common denominator; false when one would be too large.
static bool whole_weights(const struct weights *weights, wide common, struct money_share *shares)
{
	wide sum = 0;
	for (size_t i = 0; i < weights->class_count; i++) {
		wide factor = common / weights->classes[i].den;
		for (size_t party = 0; party < weights->party_count; party++) {
			wide part;
			if (__builtin_mul_overflow(weights->classes[i].nums[party], factor,
						   &part) ||
			    __builtin_add_overflow(sum, part, &sum) || sum > SUM_MAX)
				return false;
			shares[party].weight += part;
		}
	}
	return true;
}

bool weights_nano(const struct weights *weights, size_t party, int64_t *ret_nano)
{
	wide common = common_den(weights), sum = 0;
	if (common == 0)
		return false;
	for (size_t i = 0; i < weights->class_count; i++) {
		wide factor = common / weights->classes[i].den, part;
		if (__builtin_mul_overflow(weights->classes[i].nums[party], factor, &part) ||
		    __builtin_add_overflow(sum, part, &sum))
			return false;
	}
	if (__builtin_mul_overflow(sum, (wide)MONEY_NANO_PER_UNIT, &sum))
		return false;
	return money_round(sum, common, ret_nano);
}

struct big_share {
	struct big num; // over one common denominator, then the remainder
	size_t party;
	int64_t nano;
};

// Brings all weights over one denominator, which stays in *den.
static void big_weights(const struct weights *weights, struct big_share *shares, struct big *den)
{
	struct big step;
	big_set(den, 1);
	for (size_t i = 0; i < weights->class_count; i++) {
		uint64_t class_den = (uint64_t)weights->classes[i].den;
		big_copy(&step, den);
		uint64_t shared =
			(uint64_t)money_gcd((wide)class_den, (wide)big_div(&step, class_den));
		big_copy(&step, den);
		(void)big_div(&step, shared); // exact
		for (size_t party = 0; party < weights->party_count; party++) {
			big_mul(&shares[party].num, class_den / shared);
			big_add_mul(&shares[party].num, &step,
				    (unsigned __int128)weights->classes[i].nums[party]);
		}
		big_mul(den, class_den / shared);
	}
}

static int by_remainder(const void *left, const void *right)
{
	const struct big_share *a = left, *b = right;
	int order = big_cmp(&b->num, &a->num);
	return order != 0 ? order : a->party < b->party ? -1 : 1;
}

static bool split_big(struct big_share *shares, size_t count, int64_t total, size_t leave_out)
{
	struct big sum;
	big_set(&sum, 0);
	if (leave_out != WEIGHTS_NOBODY)
		big_set(&shares[leave_out].num, 0);
	for (size_t i = 0; i < count; i++)
		big_add_mul(&sum, &shares[i].num, 1);
	if (sum.count == 0 || sum.failed)
		return false;
	int64_t left = total;
	bool failed = false;
	for (size_t i = 0; i < count; i++) {
		big_mul(&shares[i].num, (uint64_t)total);
		shares[i].nano = (int64_t)big_quotient(&shares[i].num, &sum);
		left -= shares[i].nano;
		failed = failed || shares[i].num.failed;
	}
	qsort(shares, count, sizeof *shares, by_remainder);
	for (size_t i = 0; !failed && left > 0; i++, left--)
		shares[i].nano++;
	return !failed;
}

static err_status split_slowly(const struct weights *weights, int64_t total, size_t leave_out,
			       int64_t *ret_parts, struct err *err)
{
	struct big den;
	size_t count = weights->party_count;
	struct big_share *shares = calloc(count, sizeof *shares);
	if (shares == NULL)
		return no_memory(err);
	for (size_t i = 0; i < count; i++)
		shares[i].party = i;
	big_weights(weights, shares, &den);
	bool good = !den.failed && split_big(shares, count, total, leave_out);
	for (size_t i = 0; good && i < count; i++)
		ret_parts[shares[i].party] = shares[i].nano;
	free(shares);
	if (good)
		return ERR_OK;
	return err_set(err, ERR_LIMIT,
		       "shares have so many different denominators that their sum has no common "
		       "one of %d bits",
		       BIG_LIMBS * 64);
}

static bool split_fast(const struct weights *weights, int64_t total, size_t leave_out,
		       int64_t *ret_parts, struct money_share *shares)
{
	wide common = common_den(weights);
	if (common == 0 || !whole_weights(weights, common, shares))
		return false;
	// Without names money_apportion gives ties to the smaller place, and parties stand in the
	// order of their names.
	if (leave_out != WEIGHTS_NOBODY)
		shares[leave_out].weight = 0;
	if (!money_apportion(total, shares, weights->party_count))
		return false;
	for (size_t i = 0; i < weights->party_count; i++)
		ret_parts[i] = shares[i].nano;
	return true;
}

err_status weights_split(const struct weights *weights, int64_t total, size_t leave_out,
			 int64_t *ret_parts, bool *ret_split, struct err *err)
{
	bool any = false;
	ASSERT(total >= 0);
	memset(ret_parts, 0, weights->party_count * sizeof *ret_parts);
	for (size_t i = 0; !any && i < weights->party_count; i++)
		any = i != leave_out && !weights_is_zero(weights, i);
	*ret_split = any;
	if (!any)
		return ERR_OK;
	struct money_share *shares = calloc(weights->party_count, sizeof *shares);
	if (shares == NULL)
		return no_memory(err);
	bool done = split_fast(weights, total, leave_out, ret_parts, shares);
	free(shares);
	return done ? ERR_OK : split_slowly(weights, total, leave_out, ret_parts, err);
}

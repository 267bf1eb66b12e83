// SPDX-License-Identifier: Apache-2.0
#include "sched/spec.h"

// Every text is written with its length and every list with its count, so that two different
// specs can never give the same bytes.
static void put_text(struct buf *out, struct str text)
{
	buf_printf(out, "%zu:", text.len);
	buf_put(out, text);
}

static void put_int(struct buf *out, int64_t value) { buf_printf(out, "%lld;", (long long)value); }

static void put_texts(struct buf *out, const struct str *texts, size_t count)
{
	put_int(out, (int64_t)count);
	for (size_t i = 0; i < count; i++)
		put_text(out, texts[i]);
}

static void put_selector(struct buf *out, const struct sched_selector *selector)
{
	put_int(out, selector->is_nothing);
	put_int(out, (int64_t)selector->count);
	for (size_t i = 0; i < selector->count; i++) {
		const struct sched_requirement *item = &selector->items[i];
		put_text(out, item->key);
		put_int(out, item->op);
		put_texts(out, item->values, item->value_count);
	}
}

static void put_node_term(struct buf *out, const struct sched_node_term *term)
{
	put_selector(out, &term->labels);
	put_selector(out, &term->fields);
}

static void put_terms(struct buf *out, const struct sched_term *terms, size_t count)
{
	put_int(out, (int64_t)count);
	for (size_t i = 0; i < count; i++) {
		put_text(out, terms[i].topology_key);
		put_selector(out, &terms[i].selector);
		put_texts(out, terms[i].namespaces, terms[i].namespace_count);
		put_selector(out, &terms[i].namespace_selector);
	}
}

static void put_version(struct buf *out, const struct sched_version *version)
{
	put_int(out, version->is_set);
	for (size_t i = 0; i < ARRAY_COUNT(version->parts); i++)
		put_int(out, version->parts[i]);
}

static void put_amounts(struct buf *out, const struct sched_spec *spec)
{
	put_int(out, (int64_t)spec->amount_count);
	for (size_t i = 0; i < spec->amount_count; i++) {
		put_text(out, spec->amounts[i].resource);
		put_int(out, spec->amounts[i].amount);
	}
}

static void put_nodes_part(struct buf *out, const struct sched_spec *spec)
{
	put_selector(out, &spec->node_selector);
	put_int(out, spec->has_terms);
	put_int(out, (int64_t)spec->term_count);
	for (size_t i = 0; i < spec->term_count; i++)
		put_node_term(out, &spec->terms[i]);
	put_int(out, (int64_t)spec->preference_count);
	for (size_t i = 0; i < spec->preference_count; i++) {
		put_int(out, spec->preferences[i].weight);
		put_node_term(out, &spec->preferences[i].term);
	}
	put_int(out, (int64_t)spec->toleration_count);
	for (size_t i = 0; i < spec->toleration_count; i++) {
		put_text(out, spec->tolerations[i].key);
		put_text(out, spec->tolerations[i].value);
		put_int(out, spec->tolerations[i].any_value);
		put_text(out, spec->tolerations[i].effect);
	}
}

static void put_pods_part(struct buf *out, const struct sched_spec *spec)
{
	put_int(out, (int64_t)spec->port_count);
	for (size_t i = 0; i < spec->port_count; i++) {
		put_int(out, spec->ports[i].port);
		put_text(out, spec->ports[i].protocol);
		put_text(out, spec->ports[i].ip);
	}
	put_int(out, (int64_t)spec->spread_count);
	for (size_t i = 0; i < spec->spread_count; i++) {
		const struct sched_spread *spread = &spec->spreads[i];
		put_int(out, spread->max_skew);
		put_int(out, spread->min_domains);
		put_text(out, spread->topology_key);
		put_selector(out, &spread->selector);
		put_int(out, spread->ignores_affinity);
		put_int(out, spread->honors_taints);
	}
	put_terms(out, spec->near, spec->near_count);
	put_terms(out, spec->apart, spec->apart_count);
}

static void put_volumes_part(struct buf *out, const struct sched_spec *spec)
{
	put_int(out, (int64_t)spec->claim_count);
	for (size_t i = 0; i < spec->claim_count; i++) {
		put_text(out, spec->claims[i].namespace_);
		put_text(out, spec->claims[i].name);
		put_int(out, spec->claims[i].is_ephemeral);
		put_text(out, spec->claims[i].owner_uid);
	}
	put_int(out, (int64_t)spec->disk_count);
	for (size_t i = 0; i < spec->disk_count; i++) {
		put_int(out, spec->disks[i].is_rbd);
		put_text(out, spec->disks[i].id);
		put_texts(out, spec->disks[i].monitors, spec->disks[i].monitor_count);
		put_int(out, spec->disks[i].is_read_only);
	}
}

static void put_gpu_part(struct buf *out, const struct sched_spec *spec)
{
	put_texts(out, spec->features, spec->feature_count);
	put_texts(out, spec->gpu_models, spec->gpu_model_count);
	put_int(out, spec->gpu_memory_mib_min);
	put_version(out, &spec->compute_min);
	put_version(out, &spec->driver_min);
	put_version(out, &spec->cuda_min);
	put_int(out, spec->topology);
	put_text(out, spec->topology_label);
	put_int(out, (int64_t)spec->gpu_ask_count);
	for (size_t i = 0; i < spec->gpu_ask_count; i++) {
		put_text(out, spec->gpu_asks[i].container);
		put_int(out, spec->gpu_asks[i].stage);
		put_int(out, spec->gpu_asks[i].count);
	}
	put_int(out, spec->gpu_count);
	put_int(out, (int64_t)spec->share_count);
	for (size_t i = 0; i < spec->share_count; i++) {
		put_text(out, spec->shares[i].container);
		put_int(out, spec->shares[i].share.milli);
		put_int(out, spec->shares[i].share.memory_mib);
	}
	put_int(out, (int64_t)spec->refusal_count);
	for (size_t i = 0; i < spec->refusal_count; i++) {
		put_int(out, spec->refusals[i].code);
		put_text(out, spec->refusals[i].detail);
	}
}

void sched_spec_key(const struct sched_spec *spec, struct buf *out)
{
	ASSERT(spec->amount_count == 0 || spec->amounts != NULL);
	put_amounts(out, spec);
	put_nodes_part(out, spec);
	put_pods_part(out, spec);
	put_volumes_part(out, spec);
	put_texts(out, spec->device_claims, spec->device_claim_count);
	put_gpu_part(out, spec);
}

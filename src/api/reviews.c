// SPDX-License-Identifier: Apache-2.0
#include "api/reviews.h"

#include "base/map.h"
#include "store/store.h"

#include <stdlib.h>

enum { KEPT_MAX = 4096, NODE_BYTES = 254 };
#define KEEP_NS UINT64_C(60000000000)

struct kept {
	uint64_t until_ns;
	char node[NODE_BYTES];
};

struct asking {
	struct asking *next, **back;
	struct reviews *reviews;
	struct k8s_call *call;
	review_done_fn *on_done;
	void *arg;
	char hash[STORE_HASH_HEX + 1];
};

struct reviews {
	struct loop *loop;
	struct k8s_client *k8s;
	const char *username, *audience;
	struct map *kept; // hash of the token -> struct kept
	struct asking *asking;
};

struct reviews *reviews_new(struct loop *loop, struct k8s_client *k8s, const char *username,
			    const char *audience)
{
	struct reviews *reviews = calloc(1, sizeof *reviews);
	if (reviews == NULL)
		return NULL;
	*reviews = (struct reviews){ loop, k8s, username, audience, NULL, NULL };
	reviews->kept = map_new(world_random(loop_world(loop)));
	return reviews;
}

static void forget(struct reviews *reviews, bool all)
{
	struct str key;
	void *value;
	uint64_t now_ns = loop_now_ns(reviews->loop);
	for (size_t i = 0; map_next(reviews->kept, &i, &key, &value);) {
		struct kept *kept = value;
		if (!all && kept->until_ns > now_ns)
			continue;
		(void)map_remove(reviews->kept, key);
		free(kept);
	}
}

static void unlink_asking(struct asking *asking)
{
	*asking->back = asking->next;
	if (asking->next != NULL)
		asking->next->back = asking->back;
}

void reviews_free(struct reviews *reviews)
{
	if (reviews == NULL)
		return;
	while (reviews->asking != NULL) {
		struct asking *asking = reviews->asking;
		unlink_asking(asking);
		k8s_call_cancel(asking->call);
		free(asking);
	}
	forget(reviews, true);
	map_free(reviews->kept);
	free(reviews);
}

static bool has_audience(const json_t *status, const char *audience)
{
	size_t i;
	json_t *item;
	json_array_foreach(json_object_get(status, "audiences"), i, item)
	{
		if (json_is_string(item) && strcmp(json_string_value(item), audience) == 0)
			return true;
	}
	return false;
}

err_status review_read(const json_t *answer, const char *username, const char *audience,
		       struct str *ret_node, struct err *err)
{
	const json_t *status = json_at(answer, "status");
	// Some servers answer 201 with authenticated=false and no error.
	if (!json_bool(status, "authenticated", false))
		return err_set(err, ERR_UNAUTHENTICATED, "the token is not authenticated");
	if (!str_eq_c(json_text(status, "user.username"), username))
		return err_set(err, ERR_UNAUTHENTICATED, "the token is not the agent's");
	if (!has_audience(status, audience))
		return err_set(err, ERR_UNAUTHENTICATED, "the token is for another audience");
	const json_t *extra = json_at(status, "user.extra");
	const json_t *names = json_object_get(extra, "authentication.kubernetes.io/node-name");
	const json_t *name = json_array_get(names, 0);
	struct str node = { json_string_value(name), json_string_length(name) };
	if (json_array_size(names) != 1 || !str_is_dns_name(node))
		return err_set(err, ERR_UNAUTHENTICATED, "the token is bound to no node");
	*ret_node = node;
	return ERR_OK;
}

static void keep(struct reviews *reviews, const char *hash, struct str node)
{
	if (map_count(reviews->kept) >= KEPT_MAX)
		forget(reviews, false);
	if (map_count(reviews->kept) >= KEPT_MAX || node.len >= NODE_BYTES)
		return; // asked again each time
	struct kept *kept = calloc(1, sizeof *kept);
	ASSERT(kept != NULL);
	kept->until_ns = loop_now_ns(reviews->loop) + KEEP_NS;
	memcpy(kept->node, node.data, node.len);
	free(map_set(reviews->kept, str_of(hash), kept));
}

static void on_answer(void *arg, const struct k8s_result *answer)
{
	struct asking *asking = arg;
	struct review_result result = { .status = ERR_UNAVAILABLE };
	AUTO(json_decrefp) json_t *json = NULL;
	unlink_asking(asking);
	if (answer->status == ERR_OK && json_parse(answer->body, &json, NULL) == ERR_OK)
		result.status = review_read(json, asking->reviews->username,
					    asking->reviews->audience, &result.node, NULL);
	if (result.status == ERR_OK)
		keep(asking->reviews, asking->hash, result.node);
	asking->on_done(asking->arg, &result);
	free(asking);
}

static void ask(struct reviews *reviews, struct asking *asking, struct str token)
{
	AUTO(buf_done) struct buf body = { .limit = 1 << 20 };
	buf_put_c(&body, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
			 "\"spec\":{\"token\":");
	buf_put_json(&body, token);
	buf_put_c(&body, ",\"audiences\":[");
	buf_put_json(&body, str_of(reviews->audience));
	buf_put_c(&body, "]}}");
	struct k8s_request request = {
		.method = "POST",
		.path = STR("/apis/authentication.k8s.io/v1/tokenreviews"),
		.body = buf_str(&body),
		.timeout_ns = UINT64_C(10000000000),
		.on_done = on_answer,
		.arg = asking,
	};
	asking->call = k8s_call_start(reviews->k8s, &request);
}

void reviews_ask(struct reviews *reviews, struct str token, review_done_fn *on_done, void *arg)
{
	char hash[STORE_HASH_HEX + 1];
	store_hash(token, hash);
	struct kept *kept = map_find(reviews->kept, str_of(hash));
	if (kept != NULL && kept->until_ns > loop_now_ns(reviews->loop)) {
		struct review_result result = { ERR_OK, str_of(kept->node) };
		on_done(arg, &result);
		return;
	}
	struct asking *asking = calloc(1, sizeof *asking);
	ASSERT(asking != NULL);
	*asking = (struct asking){ .next = reviews->asking,
				   .back = &reviews->asking,
				   .reviews = reviews,
				   .on_done = on_done,
				   .arg = arg };
	if (reviews->asking != NULL)
		reviews->asking->back = &asking->next;
	reviews->asking = asking;
	memcpy(asking->hash, hash, sizeof hash);
	ask(reviews, asking, token);
}

// SPDX-License-Identifier: Apache-2.0
#include "sched/tree.h"

int tree_key_cmp(const struct tree_key *a, const struct tree_key *b)
{
	if (a->score != b->score)
		return a->score > b->score ? -1 : 1;
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->created_s != b->created_s)
		return a->created_s < b->created_s ? -1 : 1;
	int order = str_cmp(a->namespace_, b->namespace_);
	return order != 0 ? order : str_cmp(a->name, b->name);
}

static uint64_t hash_text(uint64_t hash, struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t weight_of(const struct tree_key *key)
{
	uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), key->namespace_);
	hash = hash_text(hash, key->name) ^ (uint64_t)key->created_s;
	hash ^= hash >> 30;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ (hash >> 27);
}

static size_t size_of(const struct tree_node *node) { return node == NULL ? 0 : node->size; }

static int64_t shortest_of(const struct tree_node *node)
{
	return node == NULL ? INT64_MAX : node->shortest_s;
}

static int64_t own_of(const struct tree_node *node)
{
	return node->key->duration_s > 0 ? node->key->duration_s : INT64_MAX;
}

static void measure(struct tree_node *node)
{
	node->size = 1 + size_of(node->left) + size_of(node->right);
	node->shortest_s =
		min_i64(own_of(node), min_i64(shortest_of(node->left), shortest_of(node->right)));
}

static void replace_child(struct tree *tree, struct tree_node *parent, struct tree_node *old,
			  struct tree_node *new_child)
{
	if (parent == NULL)
		tree->root = new_child;
	else if (parent->left == old)
		parent->left = new_child;
	else
		parent->right = new_child;
	if (new_child != NULL)
		new_child->parent = parent;
}

// Lifts a child over its parent; the order stays.
static void rotate_up(struct tree *tree, struct tree_node *child)
{
	struct tree_node *parent = child->parent;
	ASSERT(parent != NULL);
	replace_child(tree, parent->parent, parent, child);
	struct tree_node **from = parent->left == child ? &parent->left : &parent->right;
	struct tree_node **to = parent->left == child ? &child->right : &child->left;
	*from = *to;
	if (*from != NULL)
		(*from)->parent = parent;
	*to = parent;
	parent->parent = child;
	measure(parent);
	measure(child);
}

void tree_insert(struct tree *tree, struct tree_node *node, const struct tree_key *key)
{
	ASSERT(!tree_has(node));
	*node = (struct tree_node){ .key = key, .weight = weight_of(key) };
	measure(node);
	struct tree_node **slot = &tree->root;
	while (*slot != NULL) {
		node->parent = *slot;
		node->parent->size++;
		node->parent->shortest_s = min_i64(node->parent->shortest_s, node->shortest_s);
		int order = tree_key_cmp(key, node->parent->key);
		ASSERT(order != 0);
		slot = order < 0 ? &node->parent->left : &node->parent->right;
	}
	*slot = node;
	while (node->parent != NULL && node->parent->weight < node->weight)
		rotate_up(tree, node);
}

void tree_remove(struct tree *tree, struct tree_node *node)
{
	ASSERT(tree_has(node));
	while (node->left != NULL && node->right != NULL)
		rotate_up(tree,
			  node->left->weight > node->right->weight ? node->left : node->right);
	struct tree_node *child = node->left != NULL ? node->left : node->right;
	replace_child(tree, node->parent, node, child);
	for (struct tree_node *up = node->parent; up != NULL; up = up->parent)
		measure(up);
	*node = (struct tree_node){ .key = NULL };
}

struct tree_node *tree_first(const struct tree *tree)
{
	struct tree_node *node = tree->root;
	while (node != NULL && node->left != NULL)
		node = node->left;
	return node;
}

struct tree_node *tree_next(const struct tree_node *node)
{
	if (node->right != NULL) {
		struct tree_node *next = node->right;
		while (next->left != NULL)
			next = next->left;
		return next;
	}
	while (node->parent != NULL && node->parent->right == node)
		node = node->parent;
	return node->parent;
}

struct tree_node *tree_find_short(const struct tree *tree, int64_t most_s)
{
	struct tree_node *node = tree->root;
	while (node != NULL) {
		if (shortest_of(node->left) <= most_s)
			node = node->left;
		else if (own_of(node) <= most_s)
			return node;
		else
			node = shortest_of(node->right) <= most_s ? node->right : NULL;
	}
	return NULL;
}

size_t tree_rank(const struct tree_node *node)
{
	ASSERT(tree_has(node));
	size_t rank = size_of(node->left);
	for (; node->parent != NULL; node = node->parent) {
		if (node->parent->right == node)
			rank += size_of(node->parent->left) + 1;
	}
	return rank;
}

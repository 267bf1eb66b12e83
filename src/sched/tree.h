// SPDX-License-Identifier: Apache-2.0
// Ordered set of pods (or of shapes by their first pod) with rank: a treap whose nodes lie inside
// the objects. Order is that of a queue: score and priority descending, creation, namespace, name.
// The key must not change while the node is in a tree. Balance comes from a hash of the key, so
// that the same contents give the same tree. The first that is short enough is found without a
// walk.
#pragma once

#include "base/str.h"

struct tree_key {
	int64_t score, priority, created_s; // score: of sched/factors.h, 0 unless they are used
	struct str namespace_, name;
	int64_t duration_s; // no part of the order; 0: not known
};
struct tree_node {
	struct tree_node *left, *right, *parent;
	const struct tree_key *key; // NULL: in no tree
	uint64_t weight;
	size_t size;        // nodes below, itself included
	int64_t shortest_s; // of them; INT64_MAX: none is known
};
struct tree {
	struct tree_node *root;
};

int tree_key_cmp(const struct tree_key *a, const struct tree_key *b);
void tree_insert(struct tree *tree, struct tree_node *node, const struct tree_key *key);
void tree_remove(struct tree *tree, struct tree_node *node);
struct tree_node *tree_first(const struct tree *tree);                      // NULL when empty
struct tree_node *tree_next(const struct tree_node *node);                  // NULL at the end
struct tree_node *tree_find_short(const struct tree *tree, int64_t most_s); // NULL: none
size_t tree_rank(const struct tree_node *node);                             // 0 is the first
static inline size_t tree_count(const struct tree *tree)
{
	return tree->root == NULL ? 0 : tree->root->size;
}
static inline bool tree_has(const struct tree_node *node) { return node->key != NULL; }

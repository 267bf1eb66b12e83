// SPDX-License-Identifier: Apache-2.0
// Decoder of Kubernetes objects by tables: one table a message names each field in JSON and in
// protobuf, its type and its place in a plain structure, so that both encodings give the same
// result. A field that no table knows is reported by its path unless the table is open: a
// scheduler must not place a pod as if an unknown constraint were absent.
// Objects and lists lie in the caller's arena; texts are borrowed from the input, which must
// live as long. Fails with ERR_INVALID or ERR_PROTOCOL on bytes that are no such object.
#pragma once

#include "base/json.h"

enum { KOBJ_UNKNOWN_MAX = 8, KOBJ_LIST_MAX = 16384 };

typedef enum kobj_kind {
	KOBJ_IGNORED,    // known and of no interest
	KOBJ_PRESENT,    // bool: the field is there; its content is of no interest
	KOBJ_TEXT,       // struct str
	KOBJ_INT,        // int64_t, 0 when absent
	KOBJ_BOOL,       // bool
	KOBJ_TRISTATE,   // int: 1 true, -1 false, 0 absent
	KOBJ_TIME,       // int64_t seconds since 1970, 0 when absent
	KOBJ_TEXTS,      // struct kobj_texts
	KOBJ_PAIRS,      // struct kobj_pairs, sorted by key, keys unique
	KOBJ_QUANTITIES, // the same; values are quantities as text
	KOBJ_OBJECT,     // pointer to a structure, NULL when absent
	KOBJ_OBJECTS,    // struct kobj_list of structures
	KOBJ_PART,       // a structure in place
	KOBJ_INLINE,     // the same, but its JSON members are the parent's
} kobj_kind;

struct kobj_table {
	const char *name;
	size_t size_bytes;
	const struct kobj_field *fields;
	size_t field_count;
	bool open; // unknown fields are not reported
};

struct kobj_field {
	const char *name;
	uint32_t number; // in protobuf; 0: JSON only
	kobj_kind kind;
	size_t offset_bytes;
	const struct kobj_table *table; // of OBJECT, OBJECTS, PART, INLINE
};

struct kobj_texts {
	struct str *items;
	size_t count;
};
struct kobj_pair {
	struct str key, value;
};
struct kobj_pairs {
	struct kobj_pair *items;
	size_t count;
};
struct kobj_list { // any typed list has this layout
	void *items;
	size_t count;
};

struct kobj_unknowns {
	struct str paths[KOBJ_UNKNOWN_MAX]; // "spec.newField", "spec.#99" from protobuf
	size_t count;                       // all, also those beyond KOBJ_UNKNOWN_MAX
};

// ret_unknowns may be NULL. On failure nothing is written to ret_object.
MUST_USE err_status kobj_from_protobuf(struct arena *arena, const struct kobj_table *table,
				       struct str bytes, struct kobj_unknowns *ret_unknowns,
				       void *ret_object, struct err *err);
MUST_USE err_status kobj_from_json(struct arena *arena, const struct kobj_table *table,
				   const json_t *value, struct kobj_unknowns *ret_unknowns,
				   void *ret_object, struct err *err);
// The message inside the API server's envelope ("k8s\0" and runtime.Unknown); bytes without the
// envelope's magic are returned as they are.
MUST_USE bool kobj_unwrap(struct str bytes, struct str *ret_message);
// Value of a key; data NULL when absent.
struct str kobj_pairs_get(const struct kobj_pairs *pairs, struct str key);

// For the decoders of the two encodings.
struct kobj_path {
	const struct kobj_path *parent;
	const char *name; // NULL: a protobuf field by number
	uint32_t number;
	size_t item_i; // SIZE_MAX: not in a list
};
struct kobj_decoder {
	struct arena *arena;
	struct kobj_unknowns *unknowns;
	struct err *err;
};
err_status kobj_fail(struct kobj_decoder *decoder, err_status status, const struct kobj_path *path,
		     const char *what);
void kobj_note_unknown(struct kobj_decoder *decoder, const struct kobj_path *path);
// Room for one more item of a list that grows in the arena; NULL at a limit.
void *kobj_list_add(struct kobj_decoder *decoder, struct kobj_list *list, size_t item_bytes);
// Of equal keys the last stays; false at the arena's limit.
bool kobj_pairs_sort(struct kobj_decoder *decoder, struct kobj_pairs *pairs);

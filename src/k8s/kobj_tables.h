// SPDX-License-Identifier: Apache-2.0
// Short forms for writing tables of kobj.h; for the files that hold tables only. Each row is
// { JSON name, protobuf number, ... } and a wrong place or type is found by the tests that
// compare both encodings.
#pragma once

#include "k8s/kobj_types.h"

#define KOBJ_ROW(name, number, kind, type, member)                                                 \
	{                                                                                          \
		name, number, kind, offsetof(type, member), NULL                                   \
	}
#define KOBJ_SUB(name, number, kind, type, member, table)                                          \
	{                                                                                          \
		name, number, kind, offsetof(type, member), table                                  \
	}
#define KOBJ_SKIP(name, number)                                                                    \
	{                                                                                          \
		name, number, KOBJ_IGNORED, 0, NULL                                                \
	}
#define KOBJ_TABLE_OF(type_name, type, rows, is_open)                                              \
	{                                                                                          \
		type_name, sizeof(type), rows, ARRAY_COUNT(rows), is_open                          \
	}

extern const struct kobj_table KOBJ_OWNER, KOBJ_AFFINITY, KOBJ_LABEL_SELECTOR, KOBJ_NODE_SELECTOR,
	KOBJ_VOLUME;

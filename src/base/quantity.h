// SPDX-License-Identifier: Apache-2.0
// Kubernetes resource quantities ("500m", "1.5", "16Gi", "1e3") as exact integers.
// Source of the grammar: k8s.io/apimachinery pkg/api/resource. Values that need rounding are
// rounded up, as Kubernetes does; negative ones are refused, larger than int64 too.
#pragma once

#include "base/str.h"

MUST_USE bool quantity_to_milli(struct str text, int64_t *ret_milli); // "100m" -> 100, "2" -> 2000
MUST_USE bool quantity_to_units(struct str text, int64_t *ret_units); // "1Ki" -> 1024, "100m" -> 1

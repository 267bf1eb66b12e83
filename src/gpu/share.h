// SPDX-License-Identifier: Apache-2.0
// Shares of one GPU, asked for as extended resources: gpuaas.io/gpu-milli (thousandths of a GPU)
// and gpuaas.io/gpu-memory (units of 256 MiB). A share takes of both; what is not asked for
// follows from the other. Names, units and this arithmetic, for agent, scheduler and server. Pure.
#pragma once

#include "base/str.h"

#define SHARE_MILLI_RESOURCE "gpuaas.io/gpu-milli"
#define SHARE_MEMORY_RESOURCE "gpuaas.io/gpu-memory"

enum { SHARE_WHOLE_MILLI = 1000, SHARE_UNIT_MIB = 256 };
// The memory of the GPU that a share is counted against as long as nobody knows which it will be.
enum { SHARE_REFERENCE_MIB = 80 * 1024 };
typedef enum share_kind { SHARE_BY_MILLI, SHARE_BY_MEMORY } share_kind;
enum { SHARE_KINDS = 2 };

struct share {
	int64_t milli, memory_mib;
};

const char *share_resource(share_kind kind);
MUST_USE bool share_kind_of(struct str resource, share_kind *ret_kind); // false: no share
// So many units of the resource, as an ask.
struct share share_ask(share_kind kind, int64_t units);
// How many units of the resource a GPU has.
int64_t share_units(share_kind kind, int64_t gpu_memory_mib);
// What the ask takes of a GPU with so much memory. Rounded down, so that asks that fill the one
// fill the other and no more.
struct share share_of(const struct share *ask, int64_t gpu_memory_mib);
struct share share_whole(int64_t gpu_memory_mib);
bool share_fits(const struct share *need, const struct share *left);
void share_add(struct share *sum, const struct share *part);
void share_sub(struct share *sum, const struct share *part);
// The larger of the two parts, in thousandths: what a bill and an order of nodes count.
int64_t share_dominant_milli(const struct share *part, int64_t gpu_memory_mib);

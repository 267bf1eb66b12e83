// SPDX-License-Identifier: Apache-2.0
// Answer of PodResources v1 List: pods, their containers, the devices of each.
#include "base/pb.h"
#include "daemons/agent/dp_proto.h"

struct walk {
	podres_row_fn *fn;
	void *arg;
	struct podres_row row;
	bool broken;
};

// Calls visit for each submessage of that number and gathers two texts on the way.
static void gather(struct walk *walk, struct str message, const uint32_t numbers[2],
		   struct str *const texts[2])
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	while (pb_next(&reader, &field)) {
		for (size_t i = 0; i < 2; i++) {
			if (texts[i] == NULL || field.number != numbers[i])
				continue;
			if (field.wire == PB_BYTES && str_is_utf8(field.bytes))
				*texts[i] = field.bytes;
			else
				walk->broken = true;
		}
	}
	walk->broken = walk->broken || reader.failed;
}

static void visit(struct walk *walk, struct str message, uint32_t number,
		  void (*fn)(struct walk *walk, struct str part))
{
	struct pb_reader reader = pb_reader_of(message);
	struct pb_field field;
	while (!walk->broken && pb_next(&reader, &field)) {
		if (field.number != number)
			continue;
		if (field.wire == PB_BYTES)
			fn(walk, field.bytes);
		else
			walk->broken = true;
	}
}

static void on_id(struct walk *walk, struct str id)
{
	if (!str_is_utf8(id)) {
		walk->broken = true;
		return;
	}
	walk->row.id = id;
	if (walk->fn != NULL)
		walk->fn(walk->arg, &walk->row);
}

static void on_devices(struct walk *walk, struct str devices)
{
	walk->row.resource = STR("");
	gather(walk, devices, (const uint32_t[]){ 1, 0 },
	       (struct str *const[]){ &walk->row.resource, NULL });
	visit(walk, devices, 2, on_id);
}

// A device that a claim gives: its driver stands for the resource.
static void on_claimed(struct walk *walk, struct str claimed)
{
	walk->row.resource = walk->row.id = STR("");
	gather(walk, claimed, (const uint32_t[]){ 2, 4 },
	       (struct str *const[]){ &walk->row.resource, &walk->row.id });
	if (!walk->broken && walk->fn != NULL)
		walk->fn(walk->arg, &walk->row);
}

static void on_claim(struct walk *walk, struct str claim) { visit(walk, claim, 4, on_claimed); }

static void on_container(struct walk *walk, struct str container)
{
	walk->row.container = STR("");
	gather(walk, container, (const uint32_t[]){ 1, 0 },
	       (struct str *const[]){ &walk->row.container, NULL });
	visit(walk, container, 2, on_devices);
	visit(walk, container, 5, on_claim);
}

static void on_pod(struct walk *walk, struct str pod)
{
	walk->row.pod = walk->row.namespace_ = STR("");
	gather(walk, pod, (const uint32_t[]){ 1, 2 },
	       (struct str *const[]){ &walk->row.pod, &walk->row.namespace_ });
	visit(walk, pod, 3, on_container);
}

err_status podres_read_list(struct str message, podres_row_fn *fn, void *arg, struct err *err)
{
	// Once for nothing, so that a broken message tells no half of itself.
	struct walk walk = { 0 };
	gather(&walk, message, (const uint32_t[]){ 0, 0 }, (struct str *const[]){ NULL, NULL });
	visit(&walk, message, 1, on_pod);
	if (walk.broken)
		return err_set(err, ERR_PROTOCOL, "not an answer of PodResources List");
	walk = (struct walk){ .fn = fn, .arg = arg };
	if (fn != NULL)
		visit(&walk, message, 1, on_pod);
	return ERR_OK;
}

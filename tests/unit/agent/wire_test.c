// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "daemons/agent/nvml_wire.h"

static struct nvml_reply reply_of(uint32_t type)
{
	struct nvml_reply reply;
	memset(&reply, 0, sizeof reply);
	reply.magic = NVML_WIRE_MAGIC;
	reply.type = type;
	if (type == NVML_SAY_INFO)
		memcpy(reply.body.info.uuid, "GPU-1", 6);
	return reply;
}

static void check_replies(struct check *c)
{
	for (uint32_t type = 0; type <= NVML_SAY_END; type++) {
		struct nvml_reply reply = reply_of(type), got;
		size_t bytes = nvml_reply_bytes(type);
		bool is_known = type >= NVML_SAY_HELLO && type < NVML_SAY_END;
		CHECK(c, "size of a known type", (bytes > 0) == is_known);
		CHECK(c, "well formed", nvml_reply_check(&reply, bytes, &got) == is_known);
		CHECK(c, "too short", !nvml_reply_check(&reply, bytes - 1, &got));
		CHECK(c, "too long", !nvml_reply_check(&reply, bytes + 1, &got));
		reply.magic++;
		CHECK(c, "foreign", !nvml_reply_check(&reply, bytes, &got));
	}
}

static void check_bodies(struct check *c)
{
	struct nvml_reply reply = reply_of(NVML_SAY_PROCESSES), got;
	size_t bytes = nvml_reply_bytes(NVML_SAY_PROCESSES);
	reply.body.processes.count = NVML_PROCESSES_MAX;
	CHECK(c, "as many as fit", nvml_reply_check(&reply, bytes, &got));
	reply.body.processes.count++;
	CHECK(c, "more than fit", !nvml_reply_check(&reply, bytes, &got));

	reply = reply_of(NVML_SAY_PROBE);
	bytes = nvml_reply_bytes(NVML_SAY_PROBE);
	memset(reply.body.probe.text, 'x', sizeof reply.body.probe.text);
	CHECK(c, "not terminated", !nvml_reply_check(&reply, bytes, &got));
	memset(reply.body.probe.text, 0, sizeof reply.body.probe.text);
	reply.body.probe.text[0] = (char)0xff;
	CHECK(c, "not UTF-8", !nvml_reply_check(&reply, bytes, &got));

	reply = reply_of(NVML_SAY_READING);
	bytes = nvml_reply_bytes(NVML_SAY_READING);
	reply.body.reading.valid = UINT64_C(1) << GPU_FIELD_COUNT;
	CHECK(c, "a field that is none", !nvml_reply_check(&reply, bytes, &got));

	reply = reply_of(NVML_SAY_INFO);
	bytes = nvml_reply_bytes(NVML_SAY_INFO);
	memcpy(reply.body.info.uuid, "x", 2);
	CHECK(c, "no UUID", !nvml_reply_check(&reply, bytes, &got));
	reply.status = 15;
	CHECK(c, "a failure needs none", nvml_reply_check(&reply, bytes, &got));
	reply.slot = GPU_MAX;
	CHECK(c, "slot out of range", !nvml_reply_check(&reply, bytes, &got));

	reply = reply_of(NVML_SAY_MIG);
	bytes = nvml_reply_bytes(NVML_SAY_MIG);
	reply.body.mig.instance_count = 1;
	CHECK(c, "an instance without a span", !nvml_reply_check(&reply, bytes, &got));
	reply.body.mig.instances[0].start = 4;
	reply.body.mig.instances[0].size = 4;
	reply.body.mig.instances[0].slices = 3;
	CHECK(c, "an instance", nvml_reply_check(&reply, bytes, &got));
	reply.body.mig.instances[0].start = 5;
	CHECK(c, "one beyond the board", !nvml_reply_check(&reply, bytes, &got));
	reply.body.mig.instance_count = MIG_INSTANCES_MAX + 1;
	CHECK(c, "more than fit", !nvml_reply_check(&reply, bytes, &got));

	reply = reply_of(NVML_SAY_XID);
	bytes = nvml_reply_bytes(NVML_SAY_XID);
	reply.slot = NVML_SLOT_NONE;
	CHECK(c, "XID of nobody", nvml_reply_check(&reply, bytes, &got));
	reply = reply_of(NVML_SAY_PROBE);
	reply.slot = NVML_SLOT_NONE;
	CHECK(c, "probe of nobody",
	      !nvml_reply_check(&reply, nvml_reply_bytes(NVML_SAY_PROBE), &got));
}

int main(void)
{
	struct check c = { 0 };
	struct nvml_request request = { .magic = NVML_WIRE_MAGIC, .type = NVML_ASK_PROBE }, got;
	CHECK(&c, "request", nvml_request_check(&request, sizeof request, &got));
	CHECK(&c, "short", !nvml_request_check(&request, sizeof request - 1, &got));
	request.type = NVML_ASK_MIG_CHANGE;
	CHECK(&c, "a change of nothing", !nvml_request_check(&request, sizeof request, &got));
	request.change.op = NVML_MIG_DESTROY;
	CHECK(&c, "a change", nvml_request_check(&request, sizeof request, &got));
	request.type = NVML_ASK_END;
	CHECK(&c, "type", !nvml_request_check(&request, sizeof request, &got));
	request.type = 0;
	CHECK(&c, "type 0", !nvml_request_check(&request, sizeof request, &got));
	request.type = NVML_ASK_OPEN;
	request.slot = GPU_MAX;
	CHECK(&c, "slot", !nvml_request_check(&request, sizeof request, &got));
	for (uint32_t ask = NVML_ASK_OPEN; ask < NVML_ASK_END; ask++)
		CHECK(&c, "answer", nvml_reply_bytes(nvml_answer_of(ask)) > 0);
	check_replies(&c);
	check_bodies(&c);
	return check_done(&c);
}

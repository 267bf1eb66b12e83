// SPDX-License-Identifier: Apache-2.0
// Files of the usage journal: whatever the bytes, the good part is a prefix that reads the same
// when it is read alone, and its events print as they were.
#include "journal/segment.h"
#include "journal/usage_event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_line(void *arg, struct str text, size_t at)
{
	size_t *lines = arg;
	struct usage_event event, again;
	AUTO(buf_done) struct buf out = { 0 };
	(void)at;
	(*lines)++;
	if (usage_event_decode(text, &event, NULL) != ERR_OK)
		return;
	usage_event_encode(&out, &event);
	ASSERT(usage_event_decode(buf_str(&out), &again, NULL) == ERR_OK);
	ASSERT(again.seq == event.seq && again.t_s == event.t_s && again.type == event.type);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t lines = 0, prefix_lines = 0;
	struct str content = { (const char *)data, size };
	struct segment_scan scan = segment_read(content, on_line, &lines);
	ASSERT(scan.lines == lines && scan.good_bytes <= size);
	struct segment_scan prefix =
		segment_read(str_slice(content, 0, scan.good_bytes), on_line, &prefix_lines);
	ASSERT(prefix.good_bytes == scan.good_bytes && prefix_lines == lines);
	// Text that no checksum protects yet goes through the event parser as well.
	on_line(&lines, content, 0);
	return 0;
}

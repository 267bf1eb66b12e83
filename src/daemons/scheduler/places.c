// SPDX-License-Identifier: Apache-2.0
#include "daemons/scheduler/places.h"

#include "daemons/scheduler/tenants.h"
#include "sched/pool.h"

bool places_put(struct scheduler *s, struct str body, struct buf *out)
{
	AUTO(json_decrefp) json_t *asked = NULL;
	const char *separator = "";
	size_t i;
	json_t *item;
	if (json_parse(body, &asked, NULL) != ERR_OK || !json_is_array(json_at(asked, "pods")) ||
	    json_array_size(json_at(asked, "pods")) > PLACES_MAX)
		return false;
	buf_put_c(out, "{\"items\":{");
	json_array_foreach(json_at(asked, "pods"), i, item)
	{
		struct str name = { json_string_value(item), json_string_length(item) }, namespace_;
		if (!str_split_next(&name, '/', &namespace_))
			continue;
		size_t position = sched_pod_position(s->core, namespace_, name);
		if (position == 0)
			continue;
		buf_put_c(out, separator);
		separator = ",";
		buf_put_json(out, str_of(json_string_value(item)));
		buf_printf(out, ":{\"position\":%zu", position);
		tenants_put_place(s, namespace_, name, out);
		buf_put_byte(out, '}');
	}
	buf_put_c(out, "}}\n");
	return buf_ok(out);
}

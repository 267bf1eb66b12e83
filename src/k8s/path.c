// SPDX-License-Identifier: Apache-2.0
#include "k8s/path.h"

#include "net/http.h"

#include <ctype.h>

static bool is_word(const char *text)
{
	if (text[0] == '\0')
		return false;
	for (; *text != '\0'; text++)
		if (!islower((unsigned char)*text) && !isdigit((unsigned char)*text) &&
		    *text != '-')
			return false;
	return true;
}

// "v1" or "group.io/v1".
static bool is_group_version(struct str text)
{
	struct str group, version;
	if (str_find_byte(text, '/', 0) == SIZE_MAX)
		return str_is_dns_label(text);
	return str_split_next(&text, '/', &group) && str_split_next(&text, '/', &version) &&
	       text.data == NULL && str_is_dns_name(group) && str_is_dns_label(version);
}

// RBAC names hold colons and more, so names are escaped; what would move in the tree is refused.
static bool is_name(struct str name)
{
	return name.len > 0 && name.len <= 253 && !str_eq(name, STR(".")) &&
	       !str_eq(name, STR("..")) && str_find_byte(name, '/', 0) == SIZE_MAX &&
	       str_find_byte(name, '%', 0) == SIZE_MAX && str_is_utf8(name);
}

static bool is_good(const struct k8s_object_path *path)
{
	return is_group_version(str_of(path->group_version)) && is_word(path->resource) &&
	       (path->namespace_ == NULL || str_is_dns_label(str_of(path->namespace_))) &&
	       (path->name == NULL || is_name(str_of(path->name))) &&
	       (path->subresource == NULL || (path->name != NULL && is_word(path->subresource)));
}

struct str k8s_path(struct arena *arena, const struct k8s_object_path *path)
{
	ASSERT(path->group_version != NULL && path->resource != NULL);
	if (!is_good(path))
		return (struct str){ NULL, 0 };
	bool is_core = strchr(path->group_version, '/') == NULL;
	struct str name = { "", 0 };
	if (path->name != NULL)
		name = http_escape(arena, str_of(path->name));
	if (name.data == NULL)
		return name;
	return str_of(arena_printf(
		arena, "%s%s%s%s/%s%s%s%s%s", is_core ? "/api/" : "/apis/", path->group_version,
		path->namespace_ == NULL ? "" : "/namespaces/",
		path->namespace_ == NULL ? "" : path->namespace_, path->resource,
		path->name == NULL ? "" : "/", name.data, path->subresource == NULL ? "" : "/",
		path->subresource == NULL ? "" : path->subresource));
}

struct str k8s_apply_path(struct arena *arena, const struct k8s_object_path *path,
			  const char *field_manager, bool force)
{
	ASSERT(path->name != NULL);
	struct str base = k8s_path(arena, path);
	struct str manager = http_escape(arena, str_of(field_manager));
	if (base.data == NULL || manager.data == NULL)
		return (struct str){ NULL, 0 };
	return str_of(arena_printf(arena, "%s?fieldManager=%s&force=%s", base.data, manager.data,
				   force ? "true" : "false"));
}

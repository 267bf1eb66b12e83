// SPDX-License-Identifier: Apache-2.0
#include "sql/url.h"

struct parts {
	struct str hosts, database;
};

static bool is_host_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '.' || c == '-' || c == '_' || c == '%';
}

// HOST, HOST:PORT or [ADDRESS]:PORT.
static bool is_host(struct str host)
{
	size_t end = 0;
	if (host.len > 0 && host.data[0] == '[') {
		end = str_find_byte(host, ']', 0);
		if (end == SIZE_MAX)
			return false;
		end++;
	} else {
		while (end < host.len && is_host_byte(host.data[end]))
			end++;
	}
	if (end < host.len && host.data[end] == ':') {
		end++;
		while (end < host.len && host.data[end] >= '0' && host.data[end] <= '9')
			end++;
	}
	return end == host.len;
}

static bool find_parts(struct str rest, struct parts *ret_parts)
{
	for (size_t i = 0; i < rest.len; i++) {
		if (rest.data[i] <= ' ' || rest.data[i] == '#' || rest.data[i] == 0x7f)
			return false;
	}
	const size_t at = str_find_byte(rest, '@', 0), query = str_find_byte(rest, '?', 0);
	const size_t slash = str_find_byte(str_slice(rest, 0, query), '/', 0);
	if (at != SIZE_MAX &&
	    (at > slash || at > query || str_find_byte(rest, '@', at + 1) != SIZE_MAX))
		return false;
	const struct str head = str_slice(rest, at == SIZE_MAX ? 0 : at + 1, query);
	const size_t path = str_find_byte(head, '/', 0);
	struct parts parts = { .hosts = str_slice(head, 0, path) };
	if (path != SIZE_MAX)
		parts.database = str_slice(head, path + 1, head.len);
	struct str hosts = parts.hosts, host;
	while (str_split_next(&hosts, ',', &host)) {
		if (!is_host(host))
			return false;
	}
	*ret_parts = parts;
	return str_find_byte(parts.database, '/', 0) == SIZE_MAX;
}

static const struct str prefix = { "postgres:", sizeof "postgres:" - 1 };

// Behind the scheme; no data when there is none.
static struct str after_scheme(struct str url)
{
	static const char *const schemes[] = { "postgres://", "postgresql://" };
	for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
		const struct str scheme = str_of(schemes[i]);
		if (str_starts(url, scheme))
			return str_slice(url, scheme.len, url.len);
	}
	return (struct str){ NULL, 0 };
}

static struct str without_prefix(struct str url)
{
	const struct str inner = str_slice(url, prefix.len, url.len);
	return str_starts(url, prefix) && after_scheme(inner).data != NULL ? inner : url;
}

static bool is_postgres(struct str url)
{
	return str_starts(url, prefix) || str_starts(url, STR("postgresql:"));
}

void url_show(struct str url, struct buf *out)
{
	struct parts parts;
	const struct str rest = after_scheme(without_prefix(url));
	if (!is_postgres(url)) {
		buf_put(out, url);
	} else if (rest.data == NULL || !find_parts(rest, &parts)) {
		buf_put_c(out, "postgres:...");
	} else {
		buf_put_c(out, "postgres://");
		buf_put(out, parts.hosts);
		buf_put_c(out, "/");
		buf_put(out, parts.database);
	}
}

err_status url_check_postgres(struct str url, struct str *ret_url, struct err *err)
{
	struct parts parts;
	const struct str inner = without_prefix(url), rest = after_scheme(inner);
	if (rest.data == NULL)
		return err_set(err, ERR_INVALID,
			       "a store begins with sqlite: or postgres://, as in "
			       "postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full");
	if (!find_parts(rest, &parts))
		return err_set(
			err, ERR_INVALID,
			"the URL of PostgreSQL is not "
			"postgres://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?NAME=VALUE&...]; "
			"@ : / ? # %% in a user or password are written as %%40 %%3A %%2F "
			"%%3F %%23 %%25");
	*ret_url = inner;
	return ERR_OK;
}

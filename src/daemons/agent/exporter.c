// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/exporter.h"

#include "sys/fs.h"
#include "sys/log.h"

#include <stdio.h>

static bool is_token(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	}
	return text.len >= EXPORTER_TOKEN_MIN && text.len < EXPORTER_TOKEN_BYTES;
}

static err_status take_token(struct str line, struct exporter_tokens *tokens, struct err *err)
{
	size_t blank = str_find_byte(line, ' ', 0);
	struct str tenant = str_slice(line, 0, blank == SIZE_MAX ? line.len : blank);
	struct str token = str_trim(str_slice(line, tenant.len, line.len));
	if (!str_eq_c(tenant, "*") &&
	    (!str_is_dns_label(tenant) || tenant.len >= EXPORTER_TENANT_BYTES))
		return err_set(err, ERR_INVALID,
			       "begins with no tenant; write TENANT TOKEN, or * TOKEN for all");
	if (!is_token(token))
		return err_set(err, ERR_INVALID,
			       "has no token of %d to %d printable characters without blanks",
			       EXPORTER_TOKEN_MIN, EXPORTER_TOKEN_BYTES - 1);
	if (tokens->count == EXPORTER_TOKENS_MAX)
		return err_set(err, ERR_LIMIT, "is one too many; at most %d tokens",
			       EXPORTER_TOKENS_MAX);
	struct exporter_token *item = &tokens->items[tokens->count++];
	(void)snprintf(item->tenant, sizeof item->tenant, STR_FMT, STR_ARG(tenant));
	(void)snprintf(item->token, sizeof item->token, STR_FMT, STR_ARG(token));
	return ERR_OK;
}

err_status exporter_tokens_parse(struct str text, struct exporter_tokens *ret, struct err *err)
{
	struct exporter_tokens tokens = { 0 };
	struct str line;
	for (size_t number = 1; str_split_next(&text, '\n', &line); number++) {
		line = str_trim(line);
		if (line.len == 0 || line.data[0] == '#')
			continue;
		if (take_token(line, &tokens, err) != ERR_OK)
			return err_wrap(err, "line %zu", number);
	}
	if (tokens.count == 0)
		return err_set(err, ERR_INVALID,
			       "the file holds no token; add one, or leave the file away to show "
			       "everything to everybody");
	*ret = tokens;
	return ERR_OK;
}

// True when the file's text is another than the last; then it is kept. A file that cannot be read
// is looked at anew when it can, whatever it says then.
static bool read_changed(const char *path, size_t max_bytes, struct buf *seen, err_status *ret,
			 struct err *err)
{
	AUTO(buf_done) struct buf text = { 0 };
	*ret = fs_read(path, max_bytes, &text, err);
	if (*ret != ERR_OK) {
		buf_done(seen);
		return false;
	}
	if (seen->data != NULL && str_eq(buf_str(&text), buf_str(seen)))
		return false;
	buf_clear(seen);
	buf_put(seen, buf_str(&text));
	return true;
}

static err_status look_counters(struct exporter *exporter, struct err *err)
{
	err_status status = ERR_OK;
	if (exporter->counters_file == NULL)
		return ERR_OK;
	if (!read_changed(exporter->counters_file, COUNTERS_MAX_BYTES + 1, &exporter->counters_seen,
			  &status, err)) {
		exporter->is_counters_bad = exporter->is_counters_bad || status != ERR_OK;
		return status == ERR_OK ? ERR_OK : err_wrap(err, "counters");
	}
	status = counters_parse(buf_str(&exporter->counters_seen), &exporter->counters, err);
	exporter->is_counters_bad = status != ERR_OK;
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", exporter->counters_file);
}

static err_status look_tokens(struct exporter *exporter, struct err *err)
{
	err_status status = ERR_OK;
	if (exporter->tokens_file == NULL)
		return ERR_OK;
	if (!read_changed(exporter->tokens_file, EXPORTER_TOKENS_MAX_BYTES, &exporter->tokens_seen,
			  &status, err)) {
		exporter->is_tokens_bad = exporter->is_tokens_bad || status != ERR_OK;
		return status == ERR_OK ? ERR_OK : err_wrap(err, "tokens of /metrics");
	}
	status = exporter_tokens_parse(buf_str(&exporter->tokens_seen), &exporter->tokens, err);
	exporter->is_tokens_bad = status != ERR_OK;
	return status == ERR_OK ? ERR_OK : err_wrap(err, "%s", exporter->tokens_file);
}

err_status exporter_init(struct exporter *exporter, const char *counters_file,
			 const char *tokens_file, struct err *err)
{
	exporter->counters_file = counters_file;
	exporter->tokens_file = tokens_file;
	counters_init(&exporter->counters);
	err_status status = look_counters(exporter, err);
	return status == ERR_OK ? look_tokens(exporter, err) : status;
}

void exporter_done(struct exporter *exporter)
{
	buf_done(&exporter->counters_seen);
	buf_done(&exporter->tokens_seen);
}

// Logs what is wrong when it is another thing than the last time.
static void tell(char why[EXPORTER_WHY_BYTES], bool is_bad, const struct err *err,
		 const char *message)
{
	if (!is_bad)
		why[0] = '\0';
	if (err->text[0] == '\0' || strncmp(why, err->text, EXPORTER_WHY_BYTES - 1) == 0)
		return;
	(void)snprintf(why, EXPORTER_WHY_BYTES, "%s", err->text);
	log_err(LOG_ERROR, message, err);
}

void exporter_look(struct exporter *exporter)
{
	struct err counters = { 0 }, tokens = { 0 };
	(void)look_counters(exporter, &counters);
	tell(exporter->counters_why, exporter->is_counters_bad, &counters,
	     "counters are not taken, those before stay");
	(void)look_tokens(exporter, &tokens);
	tell(exporter->tokens_why, exporter->is_tokens_bad, &tokens,
	     "tokens of /metrics are not taken, those before stay");
}

// Takes the same time whatever differs in texts of one length.
static bool is_same(struct str a, const char *b)
{
	unsigned char differs = 0;
	if (a.len != strlen(b))
		return false;
	for (size_t i = 0; i < a.len; i++)
		differs |= (unsigned char)(a.data[i] ^ b[i]);
	return differs == 0;
}

bool exporter_allows(const struct exporter *exporter, struct str authorization,
		     const char **ret_tenant)
{
	static const struct str scheme = { "Bearer ", 7 };
	*ret_tenant = NULL;
	if (exporter->tokens_file == NULL)
		return true;
	if (!str_eq_nocase(str_slice(authorization, 0, scheme.len), scheme))
		return false;
	struct str token = str_trim(str_slice(authorization, scheme.len, authorization.len));
	bool is_found = false;
	for (size_t i = 0; i < exporter->tokens.count; i++) {
		const struct exporter_token *item = &exporter->tokens.items[i];
		if (!is_same(token, item->token))
			continue;
		is_found = true;
		*ret_tenant = strcmp(item->tenant, "*") == 0 ? NULL : item->tenant;
	}
	return is_found;
}

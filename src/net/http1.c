// SPDX-License-Identifier: Apache-2.0
#include "net/http1.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_hex(char c) { return str_hex_value(c) >= 0; }

static bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_token_byte(char c)
{
	return is_alpha(c) || is_digit(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_value_byte(char c)
{
	unsigned char byte = (unsigned char)c;
	return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

bool http1_is_token(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_token_byte(text.data[i]))
			return false;
	return text.len > 0;
}

bool http1_is_value(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_value_byte(text.data[i]))
			return false;
	return true;
}

http1_found http1_scan_head(struct http1_scan *scan, struct str bytes, size_t *ret_head_bytes)
{
	ASSERT(scan->seen_bytes <= bytes.len);
	size_t end = min_size(bytes.len, HTTP1_HEAD_MAX_BYTES);
	for (size_t i = scan->seen_bytes; i < end; i++) {
		char c = bytes.data[i];
		bool after_cr = i > 0 && bytes.data[i - 1] == '\r';
		if ((c == '\n') != after_cr || (c != '\r' && c != '\n' && !is_value_byte(c)))
			return HTTP1_GARBAGE;
		if (c == '\n' && i == 1)
			return HTTP1_GARBAGE;
		if (c == '\n' && i >= 3 && bytes.data[i - 2] == '\n') {
			*ret_head_bytes = i + 1;
			return HTTP1_HEAD;
		}
		scan->seen_bytes = i + 1;
	}
	return bytes.len >= HTTP1_HEAD_MAX_BYTES ? HTTP1_TOO_LONG : HTTP1_MORE;
}

// ---- header lines, the same for requests and responses

// Cuts the next line without its CRLF off rest; the head is known to end every line so.
static bool next_line(struct str *rest, struct str *ret_line)
{
	size_t at = str_find_byte(*rest, '\n', 0);
	if (at == SIZE_MAX || at == 0 || rest->data[at - 1] != '\r')
		return false;
	*ret_line = str_slice(*rest, 0, at - 1);
	*rest = str_slice(*rest, at + 1, rest->len);
	return true;
}

static bool has_tab_at_edge(struct str raw)
{
	struct str value = str_trim(raw);
	size_t before = value.len == 0 ? raw.len : (size_t)(value.data - raw.data);
	struct str head = str_slice(raw, 0, before);
	struct str tail = str_slice(raw, before + value.len, raw.len);
	return str_find_byte(head, '\t', 0) != SIZE_MAX || str_find_byte(tail, '\t', 0) != SIZE_MAX;
}

static int parse_header_line(struct str line, struct http_headers *headers, struct err *err)
{
	if (line.data[0] == ' ' || line.data[0] == '\t') {
		(void)err_set(err, ERR_INVALID, "folded header lines are not accepted");
		return 400;
	}
	size_t colon = str_find_byte(line, ':', 0);
	struct str name = str_slice(line, 0, colon);
	if (colon == SIZE_MAX || !http1_is_token(name)) {
		(void)err_set(err, ERR_INVALID, "header line %zu is not \"name: value\"",
			      headers->count + 1);
		return 400;
	}
	struct str raw = str_slice(line, colon + 1, line.len), value = str_trim(raw);
	// Some readers take a tab around a value for a part of it.
	if (!http1_is_value(value) || has_tab_at_edge(raw)) {
		(void)err_set(err, ERR_INVALID, "header " STR_FMT " has a control byte",
			      STR_ARG(name));
		return 400;
	}
	if (!http_header_add(headers, name, value)) {
		(void)err_set(err, ERR_LIMIT, "more than %d headers", HTTP_HEADERS_MAX);
		return 431;
	}
	return 0;
}

static int parse_headers(struct str rest, struct http_headers *headers, struct err *err)
{
	struct str line;
	headers->count = 0;
	while (next_line(&rest, &line)) {
		if (line.len == 0) {
			if (rest.len == 0)
				return 0;
			break;
		}
		int refused = parse_header_line(line, headers, err);
		if (refused != 0)
			return refused;
	}
	(void)err_set(err, ERR_INVALID, "the head does not end with one empty line");
	return 400;
}

static size_t count_headers(const struct http_headers *headers, const char *name)
{
	size_t count = 0;
	for (size_t i = 0; i < headers->count; i++)
		count += str_eq_nocase(headers->items[i].name, str_of(name));
	return count;
}

// What proxies and servers have disagreed on when it came twice.
static const char *find_repeated(const struct http_headers *headers)
{
	static const char *const once[] = { "host",          "content-length", "transfer-encoding",
					    "authorization", "content-type",   "expect",
					    "upgrade" };
	for (size_t i = 0; i < ARRAY_COUNT(once); i++)
		if (count_headers(headers, once[i]) > 1)
			return once[i];
	return NULL;
}

// Whether the comma list of all Connection headers names the option.
static bool connection_has(const struct http_headers *headers, const char *option)
{
	for (size_t i = 0; i < headers->count; i++) {
		struct str list = headers->items[i].value, part;
		if (!str_eq_nocase(headers->items[i].name, STR("connection")))
			continue;
		while (str_split_next(&list, ',', &part))
			if (str_eq_nocase(str_trim(part), str_of(option)))
				return true;
	}
	return false;
}

static bool parse_length(struct str text, uint64_t *ret_length)
{
	uint64_t length = 0;
	// 18 digits are an exabyte: enough, and sums of lengths cannot wrap.
	if (text.len > 18 || !str_to_u64(text, &length))
		return false;
	*ret_length = length;
	return true;
}

struct framing {
	http1_framing kind; // HTTP1_NO_BODY when no header tells
	uint64_t length;
	bool told; // a length was there, also 0
};

static int parse_framing(const struct http_headers *headers, bool is_1_0, struct framing *ret,
			 struct err *err)
{
	struct str coding = http_header_find(headers, "transfer-encoding");
	struct str length = http_header_find(headers, "content-length");
	struct framing framing = { HTTP1_NO_BODY, 0, false };
	const char *repeated = find_repeated(headers);
	const char *wrong = NULL;

	if (repeated != NULL) {
		(void)err_set(err, ERR_INVALID, "header %s is there twice", repeated);
		return 400;
	}
	if (coding.data != NULL && length.data != NULL)
		wrong = "both Content-Length and Transfer-Encoding";
	else if (coding.data != NULL && is_1_0)
		wrong = "HTTP/1.0 knows no Transfer-Encoding";
	else if (length.data != NULL && !parse_length(length, &framing.length))
		wrong = "Content-Length is not a number";
	if (wrong != NULL) {
		(void)err_set(err, ERR_INVALID, "%s", wrong);
		return 400;
	}
	if (coding.data != NULL && !str_eq_nocase(coding, STR("chunked"))) {
		(void)err_set(err, ERR_UNSUPPORTED, "Transfer-Encoding other than chunked");
		return 501;
	}
	framing.told = length.data != NULL;
	if (coding.data != NULL)
		framing.kind = HTTP1_CHUNKED;
	else if (framing.length > 0)
		framing.kind = HTTP1_LENGTH;
	*ret = framing;
	return 0;
}

// ---- requests

// "." and ".." as a whole segment, written plainly or with %2e: two readers may see two paths.
static bool is_dot_segment(struct str segment)
{
	size_t dots = 0;
	while (segment.len > 0) {
		bool plain = segment.data[0] == '.';
		bool escaped = segment.len >= 3 &&
			       str_eq_nocase(str_slice(segment, 0, 3), STR("%2e"));
		if (!plain && !escaped)
			return false;
		segment = str_slice(segment, plain ? 1 : 3, segment.len);
		dots++;
	}
	return dots == 1 || dots == 2;
}

static bool is_target_byte(char c)
{
	return is_alpha(c) || is_digit(c) ||
	       (c != '\0' && strchr("-._~:/?@!$&'()*+,;=%[]", c) != NULL);
}

static bool is_good_escape(struct str target, size_t at)
{
	return target.len - at >= 3 && is_hex(target.data[at + 1]) && is_hex(target.data[at + 2]) &&
	       !(target.data[at + 1] == '0' && target.data[at + 2] == '0');
}

static const char *parse_target(struct str target, struct str *ret_path, struct str *ret_query)
{
	if (target.len == 0 || target.data[0] != '/')
		return "the target must be a path that begins with /";
	for (size_t i = 0; i < target.len; i++) {
		if (!is_target_byte(target.data[i]))
			return "the target has a byte that must be percent-encoded";
		if (target.data[i] == '%' && !is_good_escape(target, i))
			return "the target has a bad percent escape";
	}
	size_t mark = str_find_byte(target, '?', 0);
	struct str path = str_slice(target, 0, mark), rest = path, segment;
	while (str_split_next(&rest, '/', &segment))
		if (is_dot_segment(segment))
			return "the path has a dot segment";
	*ret_path = path;
	*ret_query = mark == SIZE_MAX ? STR("") : str_slice(target, mark + 1, target.len);
	return NULL;
}

bool http1_is_target(struct str text)
{
	struct str path, query;
	return parse_target(text, &path, &query) == NULL;
}

bool http1_is_method(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < 'A' || text.data[i] > 'Z')
			return false;
	return text.len > 0 && text.len <= HTTP1_METHOD_MAX_BYTES;
}

static int parse_request_line(struct str line, struct http1_request *request, struct err *err)
{
	size_t first = str_find_byte(line, ' ', 0);
	size_t second = first == SIZE_MAX ? SIZE_MAX : str_find_byte(line, ' ', first + 1);
	const char *wrong = NULL;
	request->method = str_slice(line, 0, first);
	struct str version = second == SIZE_MAX ? STR("") : str_slice(line, second + 1, line.len);
	bool known = str_eq_c(version, "HTTP/1.1") || str_eq_c(version, "HTTP/1.0");

	if (second == SIZE_MAX)
		wrong = "the request line is not \"METHOD target HTTP/1.1\"";
	else if (!http1_is_method(request->method))
		wrong = "the method is not a short word in capitals";
	else if (!known && !str_starts(version, STR("HTTP/")))
		wrong = "the request line does not end with its version";
	else
		wrong = parse_target(str_slice(line, first + 1, second), &request->path,
				     &request->query);
	if (wrong != NULL) {
		(void)err_set(err, ERR_INVALID, "%s", wrong);
		return 400;
	}
	if (!known) {
		(void)err_set(err, ERR_UNSUPPORTED, "only HTTP/1.1 and HTTP/1.0 are spoken here");
		return version.len == 8 ? 505 : 400;
	}
	request->is_1_0 = version.data[7] == '0';
	return 0;
}

// Cuts ":8443" off the end; false if there is a colon without a port behind it.
static bool cut_port(struct str *host)
{
	size_t end = host->len;
	while (end > 0 && is_digit(host->data[end - 1]))
		end--;
	if (end > 0 && host->data[end - 1] == ':') {
		bool is_port = end < host->len && host->len - end <= 5;
		*host = str_slice(*host, 0, end - 1);
		return is_port;
	}
	return true;
}

// Host of RFC 9110: a name, an IPv4 address or an IPv6 address in brackets, and maybe a port.
static bool is_host(struct str host)
{
	if (!cut_port(&host))
		return false;
	bool bracketed = host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']';
	if (bracketed)
		host = str_slice(host, 1, host.len - 1);
	for (size_t i = 0; i < host.len; i++) {
		char c = host.data[i];
		bool good = bracketed ? is_hex(c) || c == ':' || c == '.'
				      : is_alpha(c) || is_digit(c) || c == '-' || c == '_' ||
						c == '.';
		if (!good || (c == '.' && (i == 0 || host.data[i - 1] == '.')))
			return false;
	}
	return host.len > 0;
}

static int check_request(struct http1_request *request, struct err *err)
{
	struct framing framing = { HTTP1_NO_BODY, 0, false };
	struct str host = http_header_find(&request->headers, "host");
	struct str expect = http_header_find(&request->headers, "expect");
	int refused = parse_framing(&request->headers, request->is_1_0, &framing, err);
	if (refused != 0)
		return refused;
	if ((host.data == NULL && !request->is_1_0) || (host.data != NULL && !is_host(host))) {
		(void)err_set(err, ERR_INVALID, "one Host header with a name is needed");
		return 400;
	}
	if (expect.data != NULL && !str_eq_nocase(expect, STR("100-continue"))) {
		(void)err_set(err, ERR_UNSUPPORTED, "only Expect: 100-continue is known");
		return 417;
	}
	request->framing = framing.kind;
	request->length = framing.length;
	request->expects_continue = expect.data != NULL && !request->is_1_0;
	request->keep_alive = !connection_has(&request->headers, "close") &&
			      (!request->is_1_0 || connection_has(&request->headers, "keep-alive"));
	return 0;
}

int http1_parse_request(struct str head, struct http1_request *ret_request, struct err *err)
{
	struct http1_request request = { .framing = HTTP1_NO_BODY };
	struct str rest = head, line;
	if (!next_line(&rest, &line)) {
		(void)err_set(err, ERR_INVALID, "there is no request line");
		return 400;
	}
	int refused = parse_request_line(line, &request, err);
	if (refused == 0)
		refused = parse_headers(rest, &request.headers, err);
	if (refused == 0)
		refused = check_request(&request, err);
	if (refused == 0)
		*ret_request = request;
	return refused;
}

// ---- responses

static bool parse_status_line(struct str line, struct http1_response *response, bool *ret_is_1_0)
{
	// "HTTP/1.1 200" and, as RFC 9112 wants it, a blank and a reason that may be empty.
	bool good = line.len >= 12 && str_starts(line, STR("HTTP/1.")) &&
		    (line.data[7] == '0' || line.data[7] == '1') && line.data[8] == ' ' &&
		    line.data[9] >= '1' && line.data[9] <= '5' && is_digit(line.data[10]) &&
		    is_digit(line.data[11]) && (line.len == 12 || line.data[12] == ' ') &&
		    http1_is_value(line);
	if (!good)
		return false;
	response->code =
		(line.data[9] - '0') * 100 + (line.data[10] - '0') * 10 + (line.data[11] - '0');
	*ret_is_1_0 = line.data[7] == '0';
	return true;
}

err_status http1_parse_response(struct str head, bool to_head, struct http1_response *ret_response,
				struct err *err)
{
	struct http1_response response = { .framing = HTTP1_NO_BODY };
	struct framing framing = { HTTP1_NO_BODY, 0, false };
	struct str rest = head, line;
	bool is_1_0 = false;

	if (!next_line(&rest, &line) || !parse_status_line(line, &response, &is_1_0))
		return err_set(err, ERR_PROTOCOL, "the answer is not HTTP/1.1");
	int refused = parse_headers(rest, &response.headers, err);
	if (refused == 0)
		refused = parse_framing(&response.headers, is_1_0, &framing, err);
	if (refused != 0) {
		if (err != NULL)
			err->status = ERR_PROTOCOL;
		return ERR_PROTOCOL;
	}
	bool no_body = to_head || response.code < 200 || response.code == 204 ||
		       response.code == 304;
	response.length = framing.length;
	if (!no_body)
		response.framing = framing.kind != HTTP1_NO_BODY || framing.told
					   ? framing.kind
					   : HTTP1_UNTIL_CLOSE;
	response.keep_alive = response.framing != HTTP1_UNTIL_CLOSE &&
			      !connection_has(&response.headers, "close") &&
			      (!is_1_0 || connection_has(&response.headers, "keep-alive"));
	*ret_response = response;
	return ERR_OK;
}

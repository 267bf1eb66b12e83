// SPDX-License-Identifier: Apache-2.0
#include "billing/scan.h"

void scan_blanks(struct scan *scan)
{
	while (scan->at < scan->text.len) {
		char c = scan->text.data[scan->at];
		if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			return;
		scan->at++;
	}
}

bool scan_peek(const struct scan *scan, char byte)
{
	return scan->at < scan->text.len && scan->text.data[scan->at] == byte;
}

bool scan_take(struct scan *scan, char byte)
{
	scan_blanks(scan);
	if (!scan_peek(scan, byte))
		return false;
	scan->at++;
	return true;
}

bool scan_word(struct scan *scan, struct str word)
{
	scan_blanks(scan);
	if (!str_starts(str_slice(scan->text, scan->at, scan->text.len), word))
		return false;
	scan->at += word.len;
	return true;
}

bool scan_at_end(struct scan *scan)
{
	scan_blanks(scan);
	return scan->at == scan->text.len;
}

bool scan_uint(struct scan *scan, uint64_t *ret_value)
{
	scan_blanks(scan);
	size_t end = scan->at;
	while (end < scan->text.len && scan->text.data[end] >= '0' && scan->text.data[end] <= '9')
		end++;
	struct str digits = str_slice(scan->text, scan->at, end);
	if (digits.len > 1 && digits.data[0] == '0')
		return false;
	if (end < scan->text.len && strchr(".eE", scan->text.data[end]) != NULL)
		return false;
	if (!str_to_u64(digits, ret_value))
		return false;
	scan->at = end;
	return true;
}

static bool hex4(struct str digits, uint32_t *ret_unit)
{
	uint32_t unit = 0;
	if (digits.len != 4)
		return false;
	for (size_t i = 0; i < 4; i++) {
		char c = digits.data[i];
		uint32_t nibble = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
				  : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
				  : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
							 : 16;
		if (nibble == 16)
			return false;
		unit = unit * 16 + nibble;
	}
	*ret_unit = unit;
	return true;
}

static size_t put_utf8(uint32_t code, char *out)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	for (size_t i = n - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(lead[n] | code);
	return n;
}

// Decodes \uXXXX or a pair of surrogates that starts at the digits; gives the bytes taken or 0.
static size_t unescape_unicode(struct str rest, uint32_t *ret_code)
{
	uint32_t high, low;
	if (!hex4(str_slice(rest, 0, 4), &high) || high == 0 || (high >= 0xdc00 && high < 0xe000))
		return 0;
	*ret_code = high;
	if (high < 0xd800 || high >= 0xe000)
		return 4;
	if (!str_starts(str_slice(rest, 4, rest.len), STR("\\u")) ||
	    !hex4(str_slice(rest, 6, 10), &low) || low < 0xdc00 || low >= 0xe000)
		return 0;
	*ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	return 10;
}

// rest begins after the backslash. Writes the character and gives the bytes taken, 0 if bad.
static size_t unescape(struct str rest, char *out, size_t *out_len)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (rest.len == 0 || rest.data[0] == '\0')
		return 0;
	const char *simple = strchr(from, rest.data[0]);
	if (simple != NULL) {
		out[(*out_len)++] = to[simple - from];
		return 1;
	}
	uint32_t code = 0;
	size_t taken = rest.data[0] == 'u' ? unescape_unicode(str_slice(rest, 1, rest.len), &code)
					   : 0;
	if (taken == 0)
		return 0;
	*out_len += put_utf8(code, out + *out_len);
	return taken + 1;
}

// The string holds escapes; raw is what stands between the quotes.
static bool decode(struct scan *scan, struct str raw, struct str *ret_text)
{
	char *out = arena_alloc(scan->arena,
				raw.len + 1); // an escape is never shorter than its character
	size_t len = 0;
	if (out == NULL)
		return false;
	for (size_t i = 0; i < raw.len;) {
		if (raw.data[i] != '\\') {
			out[len++] = raw.data[i++];
			continue;
		}
		size_t taken = unescape(str_slice(raw, i + 1, raw.len), out, &len);
		if (taken == 0)
			return false;
		i += 1 + taken;
	}
	ASSERT(len <= raw.len);
	*ret_text = (struct str){ out, len };
	return true;
}

// Place of the first byte at or after at that ends or bends a plain ASCII string: a quote, a
// backslash, a control byte or one above 0x7f. Eight bytes at a time.
static size_t skip_plain(struct str text, size_t at)
{
	static const uint64_t ones = 0x0101010101010101U, highs = 0x8080808080808080U;
	for (; at + 8 <= text.len; at += 8) {
		uint64_t word;
		memcpy(&word, text.data + at, sizeof word);
		uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
		// A byte below n gets its high bit when n is taken away. A borrow can only mark
		// bytes above one that is marked already, so the lowest mark is right.
		uint64_t marks = (word - ones * 0x20) | (quote - ones) | (backslash - ones) | word;
		if ((marks & highs) != 0)
			return at + (size_t)__builtin_ctzll(marks & highs) / 8;
	}
	for (; at < text.len; at++) {
		unsigned char c = (unsigned char)text.data[at];
		if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\')
			break;
	}
	return at;
}

bool scan_string(struct scan *scan, struct str *ret_text)
{
	scan_blanks(scan);
	if (!scan_peek(scan, '"'))
		return false;
	bool escaped = false, plain = true;
	size_t end = skip_plain(scan->text, scan->at + 1);
	for (; end < scan->text.len && scan->text.data[end] != '"';
	     end = skip_plain(scan->text, end)) {
		unsigned char c = (unsigned char)scan->text.data[end];
		if (c < 0x20)
			return false;
		plain = plain && c < 0x80;
		escaped = escaped || c == '\\';
		end += c == '\\' ? 2 : 1; // what follows a backslash is no closing quote
	}
	if (end >= scan->text.len)
		return false;
	struct str raw = str_slice(scan->text, scan->at + 1, end);
	if (!plain && !str_is_utf8(raw))
		return false;
	if (escaped && !decode(scan, raw, &raw))
		return false;
	scan->at = end + 1;
	*ret_text = raw;
	return true;
}

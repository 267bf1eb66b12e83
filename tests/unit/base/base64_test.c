// SPDX-License-Identifier: Apache-2.0
#include "base/base64.h"
#include "check.h"

int main(void)
{
	static const struct {
		const char *plain, *standard, *url;
	} both[] = {
		{ "", "", "" },
		{ "f", "Zg==", "Zg" },
		{ "fo", "Zm8=", "Zm8" },
		{ "foo", "Zm9v", "Zm9v" },
		{ "foob", "Zm9vYg==", "Zm9vYg" },
		{ "\xfb\xff\xfe", "+//+", "-__-" },
	};
	static const char *const bad[] = { "Z",     "Zg=",  "Zg===", "Z=g=", "Zm9v=",
					   "Zm 9v", "Zh==", "Zm9=",  "====", "Zm9*" };
	struct check c = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(both); i++) {
		AUTO(buf_done) struct buf standard = { 0 }, url = { 0 }, back = { 0 };
		base64_encode(&standard, str_of(both[i].plain));
		base64url_encode(&url, str_of(both[i].plain));
		CHECK_STR(&c, both[i].plain, buf_str(&standard), both[i].standard);
		CHECK_STR(&c, both[i].plain, buf_str(&url), both[i].url);
		CHECK(&c, both[i].plain, base64_decode(&back, buf_str(&standard)));
		CHECK_STR(&c, both[i].plain, buf_str(&back), both[i].plain);
		buf_clear(&back);
		CHECK(&c, both[i].plain, base64_decode(&back, buf_str(&url)));
		CHECK_STR(&c, both[i].plain, buf_str(&back), both[i].plain);
	}
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		AUTO(buf_done) struct buf back = { 0 };
		CHECK(&c, bad[i], !base64_decode(&back, str_of(bad[i])));
	}
	AUTO(buf_done) struct buf lines = { 0 };
	CHECK(&c, "lines", base64_decode(&lines, STR("Zm9v\r\nYmFy\n")));
	CHECK_STR(&c, "lines", buf_str(&lines), "foobar");
	return check_done(&c);
}

// SPDX-License-Identifier: Apache-2.0
// The text of access tokens: "gpx_", 30 characters of 0-9A-Za-z, and 6 check digits (CRC-32 of
// the 30 in base62), so that a mistyped or cut token is refused without a look-up and scanners
// find leaked ones. 30 base62 characters are 178 bits, so a plain hash suffices at rest.
#pragma once

#include "base/str.h"

enum { TOKEN_RANDOM_CHARS = 30, TOKEN_CHECK_CHARS = 6, TOKEN_CHARS = 4 + 30 + 6 };

// Writes the token of these 30 characters, terminated.
void token_compose(const char random[TOKEN_RANDOM_CHARS], char out[TOKEN_CHARS + 1]);
// The six check digits of 30 characters, terminated.
void token_check_digits(const char random[TOKEN_RANDOM_CHARS], char out[TOKEN_CHECK_CHARS + 1]);
bool token_is_well_formed(struct str text);
// The token of an Authorization header ("Bearer gpx_..."); false when it is something else.
MUST_USE bool token_of_header(struct str header, struct str *ret_token);

// SPDX-License-Identifier: Apache-2.0
// Base64 of RFC 4648: the standard alphabet with padding, and the URL-safe one without. Decoding
// takes either alphabet, with or without padding, and skips line ends, as files of keys have
// them; anything else makes it fail.
#pragma once

#include "base/buf.h"

void base64_encode(struct buf *out, struct str bytes);
void base64url_encode(struct buf *out, struct str bytes);
// Appends to out; false when malformed (out may hold a part then) or out is at its limit.
MUST_USE bool base64_decode(struct buf *out, struct str text);

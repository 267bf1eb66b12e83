// SPDX-License-Identifier: Apache-2.0
// Secure random bytes from the kernel, for tokens, names and nonces.
#pragma once

#include "base/defs.h"

void random_bytes(void *out, size_t size_bytes); // ends the program if the kernel has none
// count characters of 0-9A-Za-z without bias, terminated; out has room for count + 1.
void random_base62(char *out, size_t count);
// RFC 9562 version 4 text, 36 characters and the terminator.
void random_uuid(char out[37]);

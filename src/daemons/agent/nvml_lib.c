// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/nvml_lib.h"

#include <dlfcn.h>
#include <string.h>

// POSIX guarantees that the address of a function fits; ISO C has no cast for it.
static void set_symbol(void *handle, const char *name, void *member)
{
	void *symbol = dlsym(handle, name);
	memcpy(member, &symbol, sizeof symbol);
}

err_status nvml_lib_open(const char *path, struct nvml_lib *ret, struct err *err)
{
	struct nvml_lib lib = { 0 };
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		return err_set(err, ERR_NOT_FOUND, "driver library %s: %s", path, dlerror());
#define LOAD(member, name, params) set_symbol(handle, name, &lib.member);
	NVML_REQUIRED(LOAD)
	NVML_OPTIONAL(LOAD)
#undef LOAD
	set_symbol(handle, "nvmlErrorString", &lib.error_text);
#define DEMAND(member, name, params)                                                               \
	if (lib.member == NULL)                                                                    \
		return err_set(err, ERR_UNSUPPORTED, "driver library %s lacks " name, path);
	NVML_REQUIRED(DEMAND)
#undef DEMAND
	*ret = lib;
	return ERR_OK;
}

const char *nvml_lib_error_text(const struct nvml_lib *lib, nvml_return code)
{
	const char *text = lib->error_text == NULL ? NULL : lib->error_text(code);
	return text == NULL ? "no text" : text;
}

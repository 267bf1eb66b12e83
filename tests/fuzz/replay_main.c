// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over the files of its corpus folders, so that every input that once found
// something is an ordinary test with any compiler.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	enum { INPUT_MAX_BYTES = 4 * 1024 * 1024 };
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		return 1;
	uint8_t *data = malloc(INPUT_MAX_BYTES);
	size_t size = data == NULL ? 0 : fread(data, 1, INPUT_MAX_BYTES, file);
	// An exact copy, so that a sanitizer sees a read past the end.
	uint8_t *exact = malloc(size == 0 ? 1 : size);
	for (size_t i = 0; exact != NULL && i < size; i++)
		exact[i] = data[i];
	int rc = exact == NULL ? 1 : LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	free(data);
	(void)fclose(file);
	return rc;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;
	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		if (folder == NULL) {
			printf("no corpus folder %s\n", argv[i]);
			return 1;
		}
		for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
			char path[4096];
			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
			int rc = replay_file(path);
			passed += rc == 0;
			failed += rc != 0;
			if (rc != 0)
				printf("failed: %s\n", path);
		}
		(void)closedir(folder);
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}

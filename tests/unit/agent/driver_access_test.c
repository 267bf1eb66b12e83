// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "daemons/agent/driver_access.h"
#include "sys/fs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/driver-access-XXXXXX";

// A link stands in for the device node, which not everybody may make.
static void make(struct check *c, const char *name)
{
	char path[200];
	(void)snprintf(path, sizeof path, "%s/dev/%s", root, name);
	CHECK_INT(c, name, symlink("/dev/null", path), 0);
}

static void expect(struct check *c, const char *name, const char *want)
{
	char nodes[DRIVER_ACCESS_NODES_MAX][32];
	AUTO(buf_done) struct buf text = { 0 };
	size_t count = driver_access_nodes(root, nodes);
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, "%s ", nodes[i]);
	CHECK_STR(c, name, buf_str(&text), want);
}

int main(void)
{
	struct check c = { 0 };
	char folder[200], command[250];
	struct err err;
	CHECK(&c, "folder", mkdtemp(root) != NULL);
	(void)snprintf(folder, sizeof folder, "%s/dev/nvidia-caps", root);
	CHECK_INT(&c, "folders", fs_mkdirs(folder, 0700, &err), ERR_OK);
	expect(&c, "no driver", "");
	make(&c, "nvidia0");
	expect(&c, "GPUs without the control node", "");
	make(&c, "nvidiactl");
	make(&c, "nvidia11");
	make(&c, "nvidia-uvm"); // not needed to ask the driver
	expect(&c, "control and GPUs", "nvidiactl nvidia0 nvidia11 ");
	make(&c, "nvidia-caps/nvidia-cap2");
	make(&c, "nvidia-caps/nvidia-cap3"); // of an instance: it is its holder's
	expect(&c, "MIG is read", "nvidiactl nvidia0 nvidia11 nvidia-caps/nvidia-cap2 ");
	make(&c, "nvidia-caps/nvidia-cap1");
	expect(&c, "and laid out",
	       "nvidiactl nvidia0 nvidia11 nvidia-caps/nvidia-cap1 nvidia-caps/nvidia-cap2 ");
	(void)snprintf(command, sizeof command, "rm -r %s", root);
	CHECK_INT(&c, "cleaned up", system(command), 0);
	return check_done(&c);
}

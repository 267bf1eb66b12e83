// SPDX-License-Identifier: Apache-2.0
// The agent on boards that bridges join in pairs: a container gets a pair, one GPU is taken
// where no pair is torn. Arguments: agent, emulator daemon, emulated library, file of a board.
#include "check.h"
#include "rig.h"

#include <signal.h>

enum { GPUS = 4, SAFETY_MS = 30000 };

static struct fake_answer ask(const char *places, size_t size)
{
	struct fake_answer answer;
	struct str ids[GPUS];
	size_t count = 0;
	for (size_t i = 0; places[i] != '\0'; i++)
		ids[count++] = str_of(rig.kubelet.devices[places[i] - '0'].id);
	fake_kubelet_prefer(&rig.kubelet, ids, count, size, &answer);
	return answer;
}

static bool is_id(const struct fake_answer *answer, size_t i, size_t device)
{
	return strcmp(answer->ids[i], rig.kubelet.devices[device].id) == 0;
}

int main(int argc, char **argv)
{
	struct check c = { 0 };
	if (argc != 5)
		return 2;
	rig_set_up(argv, GPUS, "{}");
	rig_start_agent("none");
	WAIT(&c, "lists", rig_has_stream);
	CHECK_INT(&c, "all", rig.kubelet.device_count, GPUS);
	struct fake_answer answer = ask("123", 2);
	CHECK(&c, "a pair rather than neighbours", is_id(&answer, 0, 2) && is_id(&answer, 1, 3));
	answer = ask("123", 1);
	CHECK(&c, "the one without its peer", is_id(&answer, 0, 1));
	answer = ask("023", 1);
	CHECK(&c, "the one without its peer", is_id(&answer, 0, 0));
	CHECK_INT(&c, "ends well", rig_stop_agent(SIGTERM), 0);
	rig_clean_up(c.failed > 0);
	return check_done(&c);
}

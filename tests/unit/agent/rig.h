// SPDX-License-Identifier: Apache-2.0
// What the tests of the whole agent share: a folder, the emulator's daemon, the agent as a
// program, a fake kubelet, waiting with the loop running, the journal's events.
#pragma once

#include "check.h"
#include "fake_kubelet.h"
#include "journal/usage_event.h"

#include <sys/types.h>

struct rig {
	const char *agent, *emud, *library, *board;
	char root[100];
	struct loop *loop;
	struct fake_kubelet kubelet;
	pid_t emud_pid, agent_pid; // 0: does not run
	bool has_no_inotify;       // agents that are started from now on get none
};
extern struct rig rig;

// argv: agent, emulator daemon, emulated library, file of a board. config: of the agent.
void rig_set_up(char **argv, unsigned gpus, const char *config);
void rig_clean_up(bool keep);
void rig_write(const char *name, const char *mode, const char *text); // below root
// A kubeconfig for the API server there; its path into path.
void rig_write_kubeconfig(const char *address, char *path, size_t path_bytes);
void rig_control(const char *command);        // with its line feed
void rig_start_agent(const char *kubeconfig); // "none" or a file; it ends with the test
int rig_stop_agent(int sig);                  // its exit code, -1: killed
uint64_t rig_now_ns(void);
// Runs the loop until it is true; the time it took, or UINT64_MAX after limit_ms.
uint64_t rig_wait_for(bool (*is_true)(void), unsigned limit_ms);
// Checks that it gets true within SAFETY_MS, which each test has of its own.
#define WAIT(c, name, fn) CHECK((c), (name), rig_wait_for((fn), SAFETY_MS) != UINT64_MAX)
void rig_wait(unsigned ms);
bool rig_has_stream(void); // registered, and the list has come
// What the plugin of another resource offers; NULL and 0: there is none.
const struct fake_plugin *rig_plugin(const char *resource);
size_t rig_offered(const char *resource);
size_t rig_unhealthy(const char *resource); // of those
// Events of the journal, in order; at most max.
size_t rig_events(struct usage_event *ret, size_t max);
size_t rig_count(event_type type);
const char *rig_page(void);          // of /metrics, empty: no answer; until the next call
double rig_figure(const char *name); // of the page, with its labels; -1: not there
bool rig_watches_events(void);       // of GPUs: an XID from now on is told

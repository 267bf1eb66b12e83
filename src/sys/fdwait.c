// SPDX-License-Identifier: Apache-2.0
#include "sys/fdwait.h"

#include "sys/clock.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)

unsigned wait_fd(int fd, unsigned events, uint64_t until_ns)
{
	ASSERT(fd >= 0 && events != 0);
	const short wanted = (short)(((events & WAIT_READ) != 0 ? POLLIN : 0) |
				     ((events & WAIT_WRITE) != 0 ? POLLOUT : 0));
	for (;;) {
		const uint64_t now_ns = clock_mono_ns();
		const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		const struct timespec left = { .tv_sec = (time_t)(left_ns / NS_PER_S),
					       .tv_nsec = (long)(left_ns % NS_PER_S) };
		struct pollfd one = { .fd = fd, .events = wanted };
		const int count = ppoll(&one, 1, &left, NULL);
		if (count < 0 && errno == EINTR)
			continue;
		ASSERT(count >= 0);
		if (count == 0)
			return 0;
		if ((one.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
			return events;
		return ((one.revents & POLLIN) != 0 ? (unsigned)WAIT_READ : 0) |
		       ((one.revents & POLLOUT) != 0 ? (unsigned)WAIT_WRITE : 0);
	}
}

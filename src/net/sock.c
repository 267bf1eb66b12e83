// SPDX-License-Identifier: Apache-2.0
#include "net/sock.h"

#include "sys/fault.h"
#include "sys/fs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 512, KEEPALIVE_IDLE_S = 30, KEEPALIVE_STEP_S = 10, KEEPALIVE_PROBES = 3 };

bool sock_split(struct str text, struct str *ret_host, struct str *ret_port)
{
	size_t colon = SIZE_MAX;
	for (size_t at = str_find_byte(text, ':', 0); at != SIZE_MAX;
	     at = str_find_byte(text, ':', at + 1))
		colon = at;
	uint64_t number;
	if (colon == SIZE_MAX)
		return false;
	struct str host = str_slice(text, 0, colon), port = str_slice(text, colon + 1, text.len);
	bool bracketed = host.len > 2 && host.data[0] == '[' && host.data[host.len - 1] == ']';
	if (bracketed)
		host = str_slice(host, 1, host.len - 1);
	else if (str_find_byte(host, ':', 0) != SIZE_MAX)
		return false;
	if (!str_to_u64(port, &number) || number > UINT16_MAX)
		return false;
	*ret_host = host;
	*ret_port = port;
	return true;
}

static err_status unix_address(const char *path, struct sock_address *ret, struct err *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	if (path[0] != '/' || length >= sizeof un.sun_path)
		return err_set(err, ERR_INVALID,
			       "socket path %s must begin with / and have at most %zu bytes", path,
			       sizeof un.sun_path - 1);
	memcpy(un.sun_path, path, length + 1);
	*ret = (struct sock_address){ .size_bytes = (socklen_t)sizeof un };
	memcpy(&ret->storage, &un, sizeof un);
	return ERR_OK;
}

static const char *unix_path(const char *text)
{
	return str_starts(str_of(text), STR("unix:")) ? text + strlen("unix:") : NULL;
}

static err_status resolve_inet(const char *target, int flags, struct sock_address *ret_addresses,
			       size_t *ret_count, struct err *err)
{
	struct addrinfo hints = { .ai_flags = flags, .ai_socktype = SOCK_STREAM }, *list = NULL;
	struct str host, port;
	char host_text[256], port_text[8];
	if (!sock_split(str_of(target), &host, &port) || host.len >= sizeof host_text)
		return err_set(err, ERR_INVALID, "%s is not \"host:port\"", target);
	(void)snprintf(host_text, sizeof host_text, STR_FMT, STR_ARG(host));
	(void)snprintf(port_text, sizeof port_text, STR_FMT, STR_ARG(port));
	hints.ai_flags |= AI_NUMERICSERV;
	int rc = getaddrinfo(host.len == 0 ? NULL : host_text, port_text, &hints, &list);
	if (rc != 0)
		return err_set(err, ERR_UNAVAILABLE, "no address for %s: %s", target,
			       gai_strerror(rc));
	size_t count = 0;
	for (struct addrinfo *a = list; a != NULL && count < SOCK_ADDRESSES_MAX; a = a->ai_next) {
		if (a->ai_addrlen > sizeof ret_addresses[count].storage)
			continue;
		memcpy(&ret_addresses[count].storage, a->ai_addr, a->ai_addrlen);
		ret_addresses[count++].size_bytes = a->ai_addrlen;
	}
	freeaddrinfo(list);
	if (count == 0)
		return err_set(err, ERR_UNAVAILABLE, "no address for %s", target);
	*ret_count = count;
	return ERR_OK;
}

err_status sock_resolve(const char *target, struct sock_address *ret_addresses, size_t *ret_count,
			struct err *err)
{
	const char *path = unix_path(target);
	if (path == NULL)
		return resolve_inet(target, 0, ret_addresses, ret_count, err);
	err_status status = unix_address(path, ret_addresses, err);
	if (status == ERR_OK)
		*ret_count = 1;
	return status;
}

static err_status remove_old_socket(const char *path, struct err *err)
{
	struct stat info;
	if (lstat(path, &info) != 0)
		return errno == ENOENT ? ERR_OK : err_sys(err, errno, "looking at %s", path);
	if (!S_ISSOCK(info.st_mode))
		return err_set(err, ERR_CONFLICT, "%s exists and is not a socket", path);
	if (unlink(path) != 0 && errno != ENOENT)
		return err_sys(err, errno, "removing the old socket %s", path);
	return ERR_OK;
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage storage = { .ss_family = AF_UNSPEC };
	socklen_t size_bytes = sizeof storage;
	int rc = getsockname(fd, (struct sockaddr *)&storage, &size_bytes);
	ASSERT(rc == 0);
	if (storage.ss_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, &storage, sizeof in);
		return ntohs(in.sin_port);
	}
	if (storage.ss_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, &storage, sizeof in6);
		return ntohs(in6.sin6_port);
	}
	return 0;
}

err_status sock_listen(const char *listen_on, int *ret_fd, uint16_t *ret_port, struct err *err)
{
	struct sock_address addresses[SOCK_ADDRESSES_MAX];
	const char *path = unix_path(listen_on);
	size_t count = 1;
	int on = 1;
	err_status status = path != NULL
				    ? unix_address(path, addresses, err)
				    : resolve_inet(listen_on, AI_PASSIVE, addresses, &count, err);
	if (status == ERR_OK && path != NULL)
		status = remove_old_socket(path, err);
	if (status != ERR_OK)
		return status;
	AUTO(fs_closep)
	int fd = socket(addresses[0].storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);
	if (fd < 0)
		return err_sys(err, errno, "making a socket for %s", listen_on);
	// Linux gives the socket file the mode of the socket, so there is no moment with another.
	if (path != NULL && fchmod(fd, 0600) != 0)
		return err_sys(err, errno, "setting the mode of %s", listen_on);
	if (path == NULL && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
		return err_sys(err, errno, "setting up a socket for %s", listen_on);
	if (bind(fd, (struct sockaddr *)&addresses[0].storage, addresses[0].size_bytes) != 0 ||
	    listen(fd, BACKLOG) != 0)
		return err_sys(err, errno, "listening on %s", listen_on);
	*ret_port = bound_port(fd);
	*ret_fd = fd;
	fd = -1;
	return ERR_OK;
}

// Short messages go out at once, and a peer that vanished is noticed within a minute.
static void tune(int fd)
{
	static const struct {
		int level, option, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_STEP_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
	};
	for (size_t i = 0; i < ARRAY_COUNT(options); i++)
		// It works without them too.
		(void)setsockopt(fd, options[i].level, options[i].option, &options[i].value,
				 sizeof options[i].value);
}

err_status sock_connect(const struct sock_address *address, int *ret_fd, struct err *err)
{
	AUTO(fs_closep)
	int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(err, errno, "making a socket");
	if (address->storage.ss_family != AF_UNIX)
		tune(fd);
	const struct sockaddr *to = (const struct sockaddr *)&address->storage;
	if ((fault_due() || connect(fd, to, address->size_bytes) != 0) && errno != EINPROGRESS)
		return err_set(err, ERR_UNAVAILABLE, "cannot connect: %s", strerror(errno));
	*ret_fd = fd;
	fd = -1;
	return ERR_OK;
}

int sock_accept(int listen_fd, int *ret_fd, struct sock_address *ret_peer)
{
	struct sock_address peer = { .size_bytes = sizeof peer.storage };
	int fd = fault_due() ? -1
			     : accept4(listen_fd, (struct sockaddr *)&peer.storage,
				       &peer.size_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		// A client that left before it was accepted is no failure of ours.
		return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 : -1;
	if (peer.storage.ss_family != AF_UNIX)
		tune(fd);
	*ret_fd = fd;
	*ret_peer = peer;
	return 1;
}

void sock_peer_text(const struct sock_address *address, char out[SOCK_TEXT_BYTES])
{
	const char *text = NULL;
	if (address->storage.ss_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, &address->storage, sizeof in);
		text = inet_ntop(AF_INET, &in.sin_addr, out, SOCK_TEXT_BYTES);
	} else if (address->storage.ss_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, &address->storage, sizeof in6);
		text = inet_ntop(AF_INET6, &in6.sin6_addr, out, SOCK_TEXT_BYTES);
		// Clients of a dual-stack socket are known by their IPv4 address.
		if (text != NULL && str_starts(str_of(out), STR("::ffff:")))
			memmove(out, out + strlen("::ffff:"), strlen(out) - strlen("::ffff:") + 1);
	}
	if (text == NULL)
		(void)snprintf(out, SOCK_TEXT_BYTES, "unix");
}

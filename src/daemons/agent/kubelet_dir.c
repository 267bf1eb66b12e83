// SPDX-License-Identifier: Apache-2.0
#include "daemons/agent/kubelet_dir.h"

#include "daemons/agent/checkpoint.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t POLL_NS = 1000 * UINT64_C(1000000);
static const char kubelet_name[] = "kubelet.sock";

struct seen { // what tells one file from its successor
	dev_t device;
	ino_t inode;
	struct timespec changed;
};

struct kubelet_dir {
	struct loop *loop;
	struct kubelet_dir_config config;
	char path[PATH_MAX];
	int fd;
	struct loop_fd *watch;
	struct loop_timer *poll;
	struct seen kubelet, checkpoint, folder;
};

static bool look(const struct kubelet_dir *dir, const char *name, struct seen *ret)
{
	char path[PATH_MAX + NAME_MAX + 2];
	struct stat info;
	(void)snprintf(path, sizeof path, "%s/%s", dir->path, name);
	if (stat(path, &info) != 0)
		return false;
	*ret = (struct seen){ info.st_dev, info.st_ino, info.st_ctim };
	return true;
}

static bool is_same(const struct seen *a, const struct seen *b)
{
	return a->device == b->device && a->inode == b->inode &&
	       a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static void check_all(struct kubelet_dir *dir)
{
	struct seen now;
	if (look(dir, kubelet_name, &now) && !is_same(&now, &dir->kubelet)) {
		dir->kubelet = now;
		dir->config.on_kubelet(dir->config.arg);
	}
	dir->config.on_any(dir->config.arg);
	if (look(dir, CHECKPOINT_FILE, &now) && !is_same(&now, &dir->checkpoint)) {
		dir->checkpoint = now;
		dir->config.on_checkpoint(dir->config.arg);
	}
}

static void on_inotify(void *arg, unsigned events)
{
	struct kubelet_dir *dir = arg;
	_Alignas(struct inotify_event) char bytes[4096];
	(void)events;
	// What happened is read from the folder itself; the events only say that something did.
	while (read(dir->fd, bytes, sizeof bytes) > 0)
		continue;
	check_all(dir);
}

static void stop_inotify(struct kubelet_dir *dir)
{
	loop_fd_free(dir->watch);
	dir->watch = NULL;
	if (dir->fd >= 0)
		(void)close(dir->fd);
	dir->fd = -1;
}

static void start_inotify(struct kubelet_dir *dir)
{
	const uint32_t mask = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ONLYDIR;
	dir->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (dir->fd < 0)
		return;
	if (inotify_add_watch(dir->fd, dir->path, mask) < 0 ||
	    loop_fd_new(dir->loop, dir->fd, LOOP_READ, on_inotify, dir, &dir->watch, NULL) !=
		    ERR_OK)
		stop_inotify(dir);
}

static void on_poll(void *arg)
{
	struct kubelet_dir *dir = arg;
	struct seen folder = { 0 };
	bool is_there = look(dir, ".", &folder);
	bool is_replaced = folder.device != dir->folder.device || folder.inode != dir->folder.inode;
	if (is_there && (dir->watch == NULL || is_replaced)) {
		stop_inotify(dir);
		start_inotify(dir);
		dir->folder = folder;
	}
	check_all(dir);
	loop_timer_set(dir->poll, POLL_NS);
}

err_status kubelet_dir_new(struct loop *loop, const struct kubelet_dir_config *config,
			   struct kubelet_dir **ret, struct err *err)
{
	struct kubelet_dir *dir = calloc(1, sizeof *dir);
	if (dir == NULL)
		return err_set(err, ERR_LIMIT, "no memory to watch a folder");
	dir->loop = loop;
	dir->config = *config;
	dir->fd = -1;
	int n = snprintf(dir->path, sizeof dir->path, "%s", config->dir);
	if (n < 0 || (size_t)n >= sizeof dir->path) {
		free(dir);
		return err_set(err, ERR_INVALID, "path of the device plugin folder is too long");
	}
	dir->poll = loop_timer_new(loop, on_poll, dir);
	loop_timer_set(dir->poll, 0);
	*ret = dir;
	return ERR_OK;
}

void kubelet_dir_free(struct kubelet_dir *dir)
{
	if (dir == NULL)
		return;
	stop_inotify(dir);
	loop_timer_free(dir->poll);
	free(dir);
}

bool kubelet_dir_has_inotify(const struct kubelet_dir *dir) { return dir->watch != NULL; }

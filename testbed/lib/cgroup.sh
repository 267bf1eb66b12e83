# SPDX-License-Identifier: Apache-2.0
# Control groups, version 1 (one hierarchy for each controller) and version 2 (one for all).
# Below the testbed's own group there are: control (the control plane) and for each node
# nodeN, the kubelet's root, with nodeN/programs for its containerd, kubelet and shims.
# Every process of the testbed is in this tree, so `down` finds them all, known or not.

tb_controllers="cpu cpuset memory pids"

cgroup_version() {
	case $(stat -fc %T /sys/fs/cgroup 2>/dev/null) in
	cgroup2fs) echo 2 ;;
	tmpfs) echo 1 ;;
	*) echo 0 ;;
	esac
}

# cgroup_hierarchies: the mount point of each hierarchy. Version 1 may have one of version 2
# beside it, without controllers; the container runtime makes groups there as well.
cgroup_hierarchies() {
	awk '($3 == "cgroup" || $3 == "cgroup2") && $2 ~ "^/sys/fs/cgroup(/|$)" && !seen[$4 $3]++ {
		print $2 }' /proc/self/mounts
}

# cgroup_home: the hierarchy in which the processes of the testbed are kept together.
cgroup_home() {
	local dir
	for dir in /sys/fs/cgroup/freezer /sys/fs/cgroup/pids; do
		if [ "$(cgroup_version)" = 1 ] && [ -e "$dir/cgroup.procs" ]; then
			echo "$dir"
			return
		fi
	done
	echo /sys/fs/cgroup
}

cgroup_check() {
	local have name
	case $(cgroup_version) in
	2) have=" $(cat /sys/fs/cgroup/cgroup.controllers) " ;;
	1) have=" $(awk '$3 == "cgroup" { print $4 }' /proc/self/mounts | tr ',\n' '  ') " ;;
	*) die "no cgroup file system is mounted at /sys/fs/cgroup" \
		"mount -t cgroup2 none /sys/fs/cgroup" ;;
	esac
	for name in $tb_controllers; do
		[[ $have == *" $name "* ]] || die "the cgroup controller '$name' is absent (cgroup v$(cgroup_version))" \
			"boot a kernel with it, or delegate it to this container"
	done
}

# cgroup_enable DIR: children of DIR get the controllers (version 2). The kernel refuses where
# processes live beside the children, which is so at the root of a container.
cgroup_enable() {
	local name
	for name in $tb_controllers io; do
		echo "+$name" >"$1/cgroup.subtree_control" 2>/dev/null || [ "$name" = io ] ||
			die "cannot enable the cgroup controller '$name' in $1" \
				"move the processes of $1 into a child group, see $1/cgroup.procs"
	done
}

# cgroup_level DIR: one group; version 1 wants CPUs and memory nodes before it takes processes.
cgroup_level() {
	mkdir -p "$1"
	local file
	for file in cpuset.cpus cpuset.mems; do
		[ "$(cgroup_version)" = 1 ] && [ -f "$1/$file" ] || continue
		[ -n "$(cat "$1/$file")" ] || cat "$1/../$file" >"$1/$file"
	done
}

cgroup_make_control() {
	local top
	for top in $(cgroup_hierarchies); do
		[ "$(cgroup_version)" = 1 ] || cgroup_enable "$top"
		cgroup_level "$top/$tb_cgroup"
		[ "$(cgroup_version)" = 1 ] || cgroup_enable "$top/$tb_cgroup"
	done
	cgroup_level "$(cgroup_home)/$tb_cgroup/control"
}

cgroup_make_node() {
	local top
	for top in $(cgroup_hierarchies); do
		cgroup_level "$top/$tb_cgroup/node$1"
		[ "$(cgroup_version)" = 1 ] || cgroup_enable "$top/$tb_cgroup/node$1"
	done
	cgroup_level "$(cgroup_home)/$tb_cgroup/node$1/programs"
}

# cgroup_join GROUP: moves the calling shell, and what it starts from now on.
cgroup_join() { echo "$BASHPID" >"$(cgroup_home)/$tb_cgroup/$1/cgroup.procs"; }

cgroup_pids() {
	find "$(cgroup_home)/$tb_cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -un || true
}

# cgroup_kill: ends every process of the testbed. Paused containers of version 1 are thawed, or
# they would not see the signal.
cgroup_kill() {
	local home pids i
	home=$(cgroup_home)/$tb_cgroup
	[ -d "$home" ] || return 0
	for ((i = 0; i < 200; i++)); do
		pids=$(cgroup_pids)
		[ -n "$pids" ] || return 0
		# shellcheck disable=SC2086
		kill -KILL $pids 2>/dev/null || true
		find "$home" -name freezer.state -exec sh -c 'echo THAWED >"$1"' _ {} \; 2>/dev/null || true
		sleep 0.05
	done
	die "processes do not end after SIGKILL: $(cgroup_pids | tr '\n' ' ')" \
		"they are stuck in the kernel: cat /proc/PID/stack; try testbed/down again later"
}

cgroup_remove() {
	local top i
	for top in $(cgroup_hierarchies); do
		for ((i = 0; i < 100; i++)); do
			[ -d "$top/$tb_cgroup" ] || break
			find "$top/$tb_cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
		done
		[ ! -d "$top/$tb_cgroup" ] || die "the cgroup $top/$tb_cgroup cannot be removed" \
			"see which processes are in it: find $top/$tb_cgroup -name cgroup.procs | xargs cat"
	done
}

# SPDX-License-Identifier: Apache-2.0
# What every script of the testbed shares: its names and addresses, messages, the lock, and the
# table of running programs. The files in lib/ hold the rest, one subject each.
# Sourced with `set -euo pipefail` in force.

# Every name and address that the testbed uses on the host derives from these. GPUAAS_TESTBED=1..9
# names a testbed beside the usual one, with its own names, networks and ports.
tb_number=${GPUAAS_TESTBED:-0}
[[ $tb_number =~ ^[0-9]$ ]] || { echo "GPUAAS_TESTBED=$tb_number: want 0 to 9" >&2; exit 2; }
tb_prefix=gpuaas
[ "$tb_number" = 0 ] || tb_prefix=gpuaas$tb_number
tb_host_net=10.99.$tb_number               # the nodes' network: the host is .1, node i .(10+i)
tb_pod_net=10.$((244 + tb_number))         # pods of node i are in .i.0/24
tb_service_net=10.96                       # Services are in .0.0/16; known inside nodes only
tb_api_port=$((6443 + tb_number))
tb_etcd_port=$((12379 + 10 * tb_number))   # and the next one for etcd's peers
tb_kcm_port=$((10257 + 10 * tb_number))
tb_scheduler_port=$((10259 + 10 * tb_number))
tb_dns_port=$((10053 + 10 * tb_number))    # and the next one for its readiness

tb_bridge=${tb_prefix}0
tb_veth=${tb_prefix}-n    # host end of node i's cable: gpuaas-n<i>
tb_run=/run/${tb_prefix}-testbed
tb_cgroup=${tb_prefix}-testbed
tb_host_ip=$tb_host_net.1
tb_api=https://127.0.0.1:$tb_api_port
tb_dns_ip=$tb_service_net.0.10

tb_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tb_root=$(dirname "$tb_here")
tb_state=${GPUAAS_STATE:-/var/tmp/${tb_prefix}-testbed}
tb_marker=.${tb_prefix}-testbed

say() { printf 'testbed: %s\n' "$*" >&2; }

# die TEXT [ADVICE]: ends the script; the advice says what the reader can do about it.
die() {
	printf 'testbed: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf '  what to do: %s\n' "$2" >&2
	exit 1
}

usage_error() {
	printf '%s: %s (see --help)\n' "${0##*/}" "$1" >&2
	exit 2
}

# print_help: the comment at the head of the script is its help text.
print_help() {
	sed -n '3,/^[^#]/{/^#/{s/^# \{0,1\}//;p}}' "$0"
	exit 0
}

# write_file PATH: standard input becomes the file, in one step, and only where it differs: some
# programs end when their configuration is written again.
write_file() {
	(umask 077 && cat >"$1.new")
	if cmp -s "$1.new" "$1"; then
		rm "$1.new"
	else
		mv "$1.new" "$1"
	fi
}

node_ip() { printf '%s.%d' "$tb_host_net" $((10 + $1)); }
node_pods() { printf '%s.%d.0/24' "$tb_pod_net" "$1"; }

# node_indices: the nodes that exist, one number a line.
node_indices() {
	local dir
	for dir in "$tb_run"/node[0-9]*; do
		[ ! -d "$dir" ] || printf '%s\n' "${dir##*/node}"
	done | sort -n
}

# node_index NAME: the number of an existing node, or the end of the script.
node_index() {
	local i=${1#node}
	[[ $i =~ ^[0-9]+$ ]] && [ -d "$tb_run/node$i" ] ||
		die "there is no node '$1'" "the nodes are: $(node_indices | sed 's/^/node/' | tr '\n' ' ')"
	printf '%s' "$i"
}

# A lock on the folder /run itself: it leaves no file behind, so `down` has none to race for.
lock_take() {
	exec 9</run
	flock -n 9 && return
	say "another testbed command is at work, waiting for it"
	flock -w 300 9 || die "the other testbed command did not end in 300 s" \
		"find it with: fuser -v /run"
}

# owner: the state folder of the testbed that is up on this machine, empty when none is.
owner() { [ ! -f "$tb_run/owner" ] || cat "$tb_run/owner"; }

need_running() {
	local up
	up=$(owner)
	[ -n "$up" ] || die "no testbed is up" "start one with: testbed/up"
	tb_state=$up
}

# process_ticks PID: when the process started, in clock ticks since boot. Together with the pid
# it names a process for good: pids come again, the pair does not.
process_ticks() {
	local stat
	{ stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
	set -- ${stat##*) }
	[ "$1" != Z ] && printf '%s' "${20}"
}

# program_pid NAME: the pid of a program that runs; fails when it does not.
program_pid() {
	local pid ticks
	{ read -r pid ticks <"$tb_run/pid/$1"; } 2>/dev/null || return 1
	[ "$(process_ticks "$pid")" = "$ticks" ] && printf '%s' "$pid"
}

program_alive() { program_pid "$1" >/dev/null; }

program_names() {
	local file
	for file in "$tb_run"/pid/*; do
		[ ! -f "$file" ] || printf '%s\n' "${file##*/}"
	done
}

# program_start NAME GROUP COMMAND...: starts a program in the cgroup GROUP with its own session,
# unless it already runs. It is written down before it begins, so that none is ever unknown.
program_start() {
	local name=$1 group=$2
	shift 2
	program_alive "$name" && return 0
	rm -f "$tb_run/pid/$name"
	(
		exec 9<&- </dev/null >>"$tb_state/log/$name.log" 2>&1
		me=$BASHPID
		cgroup_join "$group"
		# All of them are Go programs, and short of processors rather than of memory.
		export GOGC=300
		ulimit -n "$(ulimit -Hn)"
		printf '%s %s\n' "$me" "$(process_ticks "$me")" >"$tb_run/pid/.$name"
		mv "$tb_run/pid/.$name" "$tb_run/pid/$name"
		cd /
		exec setsid "$@"
	) &
	until [ -f "$tb_run/pid/$name" ] || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
}

# threads_gone PID: no thread but a dead leader is left. While one is, the process still holds its
# ports, although the leader is a zombie already.
threads_gone() {
	local tasks=("/proc/$1/task/"*)
	[ ${#tasks[@]} -le 1 ]
}

# program_kill NAME: ends it at once and waits until it is gone.
program_kill() {
	local pid i
	pid=$(program_pid "$1") || return 0
	kill -KILL "$pid" 2>/dev/null || true
	for ((i = 0; i < 1000; i++)); do
		{ program_alive "$1" || ! threads_gone "$pid"; } || return 0
		sleep 0.01
	done
	die "$1 (pid $pid) does not end after SIGKILL" "it is stuck in the kernel: cat /proc/$pid/stack"
}

# program_blame NAME TEXT: the end of its log, and the advice that fits it.
program_blame() {
	local log=$tb_state/log/$1.log advice="read $tb_state/log/$1.log; testbed/down, then testbed/up, starts afresh"
	printf 'testbed: %s: %s; the end of its log:\n' "$1" "$2" >&2
	tail -n 15 "$log" 2>/dev/null | cut -c1-400 | sed 's/^/  | /' >&2
	local text
	text=$(tail -n 40 "$log" 2>/dev/null || true)
	case $text in
	*"address already in use"*) advice="end the program that holds the port: ss -ltnp" ;;
	*"no space left"*) advice="make room on the disk of $tb_state, or choose another with --state" ;;
	*"too many open files"*) advice="raise the limits: ulimit -n, sysctl fs.inotify.max_user_instances" ;;
	*"annot allocate memory"*) advice="the testbed needs about 2 GiB of free memory" ;;
	esac
	die "$1 failed" "$advice"
}

# program_wait NAME SECONDS CHECK...: until CHECK holds; blames NAME if it dies or takes too long.
program_wait() {
	local name=$1 limit=$2 end
	shift 2
	end=$((SECONDS + limit))
	until "$@" >/dev/null 2>&1; do
		program_alive "$name" || program_blame "$name" "it ended"
		[ $SECONDS -lt $end ] || program_blame "$name" "it is not ready after $limit s"
		sleep 0.1
	done
}

for tb_file in cgroup host pki control node hardware; do
	# shellcheck source=/dev/null
	. "$tb_here/lib/$tb_file.sh"
done
unset tb_file

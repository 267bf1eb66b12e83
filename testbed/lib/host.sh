# SPDX-License-Identifier: Apache-2.0
# The host: what it must offer, what is already taken, the bridge, and the kernel settings that
# the kubelet changes, which `down` puts back.

# PROGRAM:PACKAGE
tb_tools="ip:iproute2 ss:iproute2 nft:nftables runc:runc nsenter:util-linux unshare:util-linux
	mountpoint:util-linux flock:util-linux setsid:util-linux openssl:openssl curl:curl jq:jq
	cc:gcc python3:python3 sysctl:procps"
# vm.* and kernel.* are the kubelet's doing, the rest is ours.
tb_sysctls="net/ipv4/ip_forward fs/inotify/max_user_instances
	vm/overcommit_memory vm/panic_on_oom kernel/panic
	kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes"

host_check() {
	[ "$(id -u)" = 0 ] || die "the testbed makes namespaces, mounts and devices, so it needs root" "sudo $0"
	host_check_tools
	cgroup_check
	host_check_kernel
	host_check_state
	host_check_ports
	host_check_networks
}

host_check_tools() {
	local entry absent=""
	for entry in $tb_tools; do
		command -v "${entry%:*}" >/dev/null || absent+=" ${entry##*:}"
	done
	[ -z "$absent" ] || die "programs are absent, of the packages:$absent" "apt-get install$absent"
	[ -n "$(cni_bin_dir)" ] || die "the CNI plugins bridge and host-local are absent" \
		"apt-get install containernetworking-plugins"
}

cni_bin_dir() {
	local dir
	for dir in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
		if [ -x "$dir/bridge" ] && [ -x "$dir/host-local" ]; then
			echo "$dir"
			return
		fi
	done
}

# Tries each kernel feature in a scratch namespace, which leaves nothing.
host_check_kernel() {
	local feature command
	while IFS='|' read -r feature command; do
		unshare --net --mount --uts sh -c "$command" >/dev/null 2>&1 ||
			die "the kernel does not offer $feature" "modprobe ${feature##* }; tried: $command"
	done <<-'L'
		bridge devices: bridge|ip link add name br9 type bridge
		cable devices: veth|ip link add name ve9 type veth peer name ve8
		netfilter address translation: nft_nat|nft add table ip t; nft 'add chain ip t c { type nat hook output priority 0; }'
		packet tracking: nf_conntrack|nft add table ip t; nft 'add chain ip t c'; nft add rule ip t c ct state new accept
		tmpfs mounts with devices: tmpfs|mount -t tmpfs -o mode=755 none /mnt && mknod /mnt/d c 195 0
	L
}

host_check_state() {
	case $tb_state/ in
	/run/* | /var/run/* | /var/lib/* | /var/log/* | /tmp/ | /)
		usage_error "--state $tb_state: the nodes have their own /run, /var/lib and /var/log; choose another place" ;;
	/*) ;;
	*) usage_error "--state $tb_state: must be an absolute path" ;;
	esac
	[ ! -e "$tb_state" ] || [ -f "$tb_state/$tb_marker" ] || [ -z "$(ls -A "$tb_state")" ] ||
		die "$tb_state is not empty and not a testbed's" "choose another folder with --state"
}

host_check_ports() {
	local port holder
	for port in $tb_api_port $tb_etcd_port $((tb_etcd_port + 1)) $tb_kcm_port $tb_scheduler_port \
		$tb_dns_port $((tb_dns_port + 1)); do
		holder=$(ss -Hltnp "sport = :$port" | sed -n 's/.*users:((\("[^"]*",pid=[0-9]*\).*/\1/p' | head -n 1)
		[ -z "$(ss -Hltn "sport = :$port")" ] ||
			die "port $port is taken by ${holder:-another namespace}" "end that program, the testbed needs the port"
	done
}

ip_number() {
	local IFS=. a b c d
	read -r a b c d <<<"$1"
	echo $(((a << 24) + (b << 16) + (c << 8) + d))
}

# nets_overlap A/X B/Y: two networks overlap if they agree in the bits of the shorter prefix.
nets_overlap() {
	local bits=${1#*/} other=${2#*/}
	[ "$other" -ge "$bits" ] || bits=$other
	[ "$bits" -gt 0 ] || return 1
	[ $(($(ip_number "${1%/*}") >> (32 - bits))) = $(($(ip_number "${2%/*}") >> (32 - bits))) ]
}

host_check_networks() {
	[ ! -e "/sys/class/net/$tb_bridge" ] ||
		die "the network device $tb_bridge exists already" "testbed/down, or: ip link delete $tb_bridge"
	local dest device ours
	while read -r dest device; do
		[[ $dest == */* ]] || dest=$dest/32
		for ours in "$tb_host_net.0/24" "$tb_pod_net.0.0/16" "$tb_service_net.0.0/16"; do
			! nets_overlap "$dest" "$ours" || die "the network $ours overlaps $dest of $device" \
				"change tb_host_net, tb_pod_net or tb_service_net in testbed/lib.sh"
		done
	done < <(ip -4 -j route show table main | jq -r '.[] | select(.dst != "default") | "\(.dst) \(.dev)"')
}

# other_settings: what another testbed, which came first, found on the machine.
other_settings() {
	local file
	for file in /run/gpuaas*-testbed/sysctls; do
		if [ -f "$file" ] && [ "$file" != "$tb_run/sysctls" ]; then
			echo "$file"
			return
		fi
	done
}

host_settings_save() {
	local key other
	[ ! -f "$tb_run/sysctls" ] || return 0
	other=$(other_settings)
	for key in $tb_sysctls; do
		[ ! -f "/proc/sys/$key" ] || printf '%s %s\n' "$key" "$(cat "/proc/sys/$key")"
	done >"$tb_run/.sysctls"
	[ -z "$other" ] || cp "$other" "$tb_run/.sysctls"
	mv "$tb_run/.sysctls" "$tb_run/sysctls"
}

# Three kubelets and their runtimes watch more files than the usual 128 instances allow.
host_settings_apply() {
	local watchers=/proc/sys/fs/inotify/max_user_instances
	[ "$(cat $watchers)" -ge 1024 ] || echo 1024 >$watchers
	echo 1 >/proc/sys/net/ipv4/ip_forward
}

# The last testbed puts back what the first one found.
host_settings_restore() {
	local key value
	[ -f "$tb_run/sysctls" ] && [ -z "$(other_settings)" ] || return 0
	while read -r key value; do
		[ "$(cat "/proc/sys/$key")" = "$value" ] || echo "$value" >"/proc/sys/$key"
	done <"$tb_run/sysctls"
}

host_network_make() {
	[ ! -e "/sys/class/net/$tb_bridge" ] || return 0
	ip -batch - <<-L
		link add name $tb_bridge type bridge forward_delay 0
		address add $tb_host_ip/24 dev $tb_bridge
		link set dev $tb_bridge up
	L
}

host_network_remove() {
	local dev
	for dev in /sys/class/net/"$tb_veth"[0-9]* "/sys/class/net/$tb_bridge"; do
		[ ! -e "$dev" ] || ip link delete dev "${dev##*/}" 2>/dev/null || true
	done
}

# host_has_resource_cap: without CAP_SYS_RESOURCE no process may lower its OOM score.
host_has_resource_cap() {
	local caps
	caps=$(awk '/^CapEff/ { print $2 }' /proc/self/status)
	(((16#$caps >> 24) & 1))
}

# host_snapshotter: overlayfs, or plain copies where the state folder is itself on an overlay.
host_snapshotter() {
	local dir=$tb_state/overlay-try
	mkdir -p "$dir"/{lower,upper,work,merged}
	if unshare --mount mount -t overlay overlay \
		-o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" "$dir/merged" 2>/dev/null; then
		echo overlayfs
	else
		say "no overlay mounts in $tb_state: images are copied for every container, which is slow"
		echo native
	fi
	rm -rf "$dir"
}

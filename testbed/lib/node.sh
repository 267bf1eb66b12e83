# SPDX-License-Identifier: Apache-2.0
# A node: a network, mount and host-name namespace of its own with containerd, kubelet and
# kube-proxy in it. The namespaces are kept by files in $tb_run/ns, so no process has to live for
# them. Inside, /run, /var/lib and /var/log are the node's own folders; that gives every node the
# usual paths (/var/lib/kubelet, /run/containerd, /var/run/cdi, ...) and leaves none on the host.

node_enter() { nsenter --net="$tb_run/ns/node$1.net" --mount="$tb_run/ns/node$1.mnt" \
	--uts="$tb_run/ns/node$1.uts" -- "${@:2}"; }

node_net_enter() { nsenter --net="$tb_run/ns/node$1.net" -- "${@:2}"; }

node_conf() { printf '%s/node%d/conf' "$tb_state" "$1"; }

# node_make INDEX: all of a node that is no process. The file "made" is written last.
node_make() {
	local i=$1
	[ ! -f "$tb_run/node$i/made" ] || return 0
	node_unmake_namespaces "$i"
	mkdir -p "$tb_run/node$i/run" "$tb_state/node$i"/{lib/kubelet,lib/gpuaas,log,conf/cni}
	ln -sfn "$tb_run/node$i/run" "$tb_state/node$i/run"
	ln -sfn . "$tb_run/node$i/run/lock"
	mkdir -p "$tb_run/node$i/run"/{cdi,netns,containerd,gpuaas-emu,nvidia/driver}
	cgroup_make_node "$i"
	node_make_namespaces "$i"
	node_make_cable "$i"
	touch "$tb_run/node$i/made"
}

# The mounts become shared within the node at the end: pods may ask for mount propagation.
node_make_namespaces() {
	local base=$tb_run/ns/node$1
	touch "$base".{net,mnt,uts}
	unshare --net="$base.net" --mount="$base.mnt" --uts="$base.uts" --propagation private \
		bash -eu -s "node$1" "$tb_run/node$1/run" "$tb_state/node$1" 9<&- <<-'L'
			echo "$1" >/proc/sys/kernel/hostname
			mount --bind "$2" /run
			mount --bind "$3/lib" /var/lib
			mount --bind "$3/log" /var/log
			mount --make-rshared /
			sysctl=/proc/sys/net/ipv4
			echo 1 >$sysctl/ip_forward
			ip link set dev lo up
		L
}

node_make_cable() {
	local i=$1 dev=$tb_veth$1
	[ ! -e "/sys/class/net/$dev" ] || ip link delete dev "$dev"
	ip link add name "$dev" type veth peer name eth0 netns "$tb_run/ns/node$i.net"
	ip link set dev "$dev" master "$tb_bridge" up
	node_net_enter "$i" ip -batch - <<-L
		address add $(node_ip "$i")/24 dev eth0
		link set dev eth0 up
		route add default via $tb_host_ip
	L
}

# node_routes COUNT: pods of another node are behind that node's address.
node_routes() {
	local i j
	for ((i = 1; i <= $1; i++)); do
		ip route replace "$(node_pods "$i")" via "$(node_ip "$i")" dev "$tb_bridge"
		for ((j = 1; j <= $1; j++)); do
			[ "$i" = "$j" ] || echo "route replace $(node_pods "$j") via $(node_ip "$j") dev eth0"
		done | node_net_enter "$i" ip -batch -
	done
}

# Plugins that make folders on the host or serve other runtimes are off; the apparmor profile is
# off so that hosts with and without it behave alike.
node_write_containerd() {
	local conf restrict=false
	conf=$(node_conf "$1")
	host_has_resource_cap || restrict=true
	write_file "$conf/containerd.toml" <<-L
		version = 3
		root = "/var/lib/containerd"
		state = "/run/containerd"
		disabled_plugins = [
		  "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri",
		  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
		  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile",
		  "io.containerd.snapshotter.v1.erofs", "io.containerd.tracing.processor.v1.otlp",
		]
		[grpc]
		  address = "/run/containerd/containerd.sock"
		[plugins."io.containerd.metadata.v1.bolt"]
		  no_sync = true
		[plugins."io.containerd.cri.v1.images"]
		  snapshotter = "$tb_snapshotter"
		  disable_snapshot_annotations = true
		  [plugins."io.containerd.cri.v1.images".pinned_images]
		    sandbox = "testbed.local/pause:1"
		[plugins."io.containerd.cri.v1.runtime"]
		  stats_collect_period = 60
		  disable_apparmor = true
		  restrict_oom_score_adj = $restrict
		  enable_cdi = true
		  cdi_spec_dirs = ["/var/run/cdi"]
		  [plugins."io.containerd.cri.v1.runtime".cni]
		    bin_dirs = ["$(cni_bin_dir)"]
		    conf_dir = "$conf/cni"
		    use_internal_loopback = true
		  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
		      SystemdCgroup = false
	L
	write_file "$conf/cni/10-pods.conflist" <<-L
		{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
		  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
		  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(node_pods "$1")"}]],
		           "routes": [{"dst": "0.0.0.0/0"}]}}]}
	L
}

# Limits are raised for bursts of short pods; images are never collected and the disk may be
# nearly full, because the machine is not the testbed's own.
node_write_kubelet() {
	local conf pki=$tb_state/pki
	conf=$(node_conf "$1")
	# For pods that take the node's names instead of the cluster's: there are none to find.
	echo 'options attempts:1 timeout:1' | write_file "$conf/resolv.conf"
	write_file "$conf/kubelet.yaml" <<-L
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: $(node_ip "$1")
		authentication:
		  anonymous: {enabled: false}
		  webhook: {enabled: true}
		  x509: {clientCAFile: $pki/ca.crt}
		authorization: {mode: Webhook}
		tlsCertFile: $pki/node$1.crt
		tlsPrivateKeyFile: $pki/node$1.key
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		cgroupDriver: cgroupfs
		cgroupRoot: /$tb_cgroup/node$1
		failCgroupV1: false
		failSwapOn: false
		oomScoreAdj: 0
		cpuManagerPolicy: none
		maxPods: 250
		kubeAPIQPS: 200
		kubeAPIBurst: 400
		eventRecordQPS: 200
		eventBurst: 400
		serializeImagePulls: false
		imageGCHighThresholdPercent: 100
		evictionHard: {memory.available: 50Mi, nodefs.available: "1%", imagefs.available: "1%"}
		makeIPTablesUtilChains: false
		resolvConf: $conf/resolv.conf
		clusterDNS: [$tb_dns_ip]
		clusterDomain: cluster.local
		volumePluginDir: /var/lib/kubelet/volume-plugins
		shutdownGracePeriod: 0s
	L
}

node_write_proxy() {
	write_file "$(node_conf "$1")/kube-proxy.yaml" <<-L
		apiVersion: kubeproxy.config.k8s.io/v1alpha1
		kind: KubeProxyConfiguration
		mode: nftables
		hostnameOverride: node$1
		clusterCIDR: $tb_pod_net.0.0/16
		clientConnection: {kubeconfig: $tb_state/pki/kube-proxy.kubeconfig}
		conntrack: {maxPerCore: 0, min: 0}
		nftables: {minSyncPeriod: 200ms}
		oomScoreAdj: 0
	L
}

# node_program INDEX NAME COMMAND...: starts a program in the node.
node_program() {
	program_start "node$1-$2" "node$1/programs" nsenter --net="$tb_run/ns/node$1.net" \
		--mount="$tb_run/ns/node$1.mnt" --uts="$tb_run/ns/node$1.uts" -- "${@:3}"
}

containerd_start() {
	node_write_containerd "$1"
	node_program "$1" containerd env PATH="$tb_bin:$PATH" \
		"$tb_bin/containerd" --config "$(node_conf "$1")/containerd.toml" --log-level warn
}

containerd_ready() { node_enter "$1" "$tb_bin/ctr" --connect-timeout 1s version; }

# A pod's first container waits for the pause image, so it is there before the kubelet.
containerd_wait() { program_wait "node$1-containerd" 60 containerd_ready "$1"; }

kubelet_start() {
	node_write_kubelet "$1"
	node_program "$1" kubelet "$tb_bin/kubelet" --config "$(node_conf "$1")/kubelet.yaml" \
		--kubeconfig "$tb_state/pki/node$1.kubeconfig" \
		--hostname-override "node$1" --node-ip "$(node_ip "$1")" -v 2
}

kubelet_ready() { node_net_enter "$1" curl -fsS --max-time 2 http://127.0.0.1:10248/healthz; }

proxy_start() {
	node_write_proxy "$1"
	node_program "$1" kube-proxy "$tb_bin/kube-proxy" --config "$(node_conf "$1")/kube-proxy.yaml"
}

proxy_ready() { node_net_enter "$1" curl -fsS --max-time 2 http://127.0.0.1:10256/healthz; }

# image_import INDEX FILE: the kubelet sees an image when containerd's CRI part has marked it.
image_import() {
	local names
	node_enter "$1" "$tb_bin/ctr" -n k8s.io image import "$2" >>"$tb_state/log/images.log" 2>&1 ||
		program_blame images "node$1 did not take $2"
	mapfile -t names < <(tar -xOf "$2" index.json | jq -r '.manifests[].annotations["io.containerd.image.name"]')
	program_wait "node$1-containerd" 20 images_known "$1" "${names[@]}"
}

images_known() {
	local known filters=("${@:2}")
	known=$(node_enter "$1" "$tb_bin/ctr" -n k8s.io image ls "${filters[@]/#/name==}" 2>/dev/null |
		grep -c 'io.cri-containerd.image=managed') || return
	[ "$known" -eq $(($# - 1)) ]
}

# node_ready INDEX: the node is Ready and free of the taints that a new node carries.
node_ready() {
	api_get "/api/v1/nodes/node$1" | jq -e '
		(.status.conditions[] | select(.type == "Ready") | .status == "True") and
		([.spec.taints[]? | select(.key | startswith("node.kubernetes.io/"))] == [])'
}

node_unmake_namespaces() {
	local file
	for file in "$tb_run/ns/node$1".{mnt,net,uts}; do
		[ "$(stat -fc %T "$file" 2>/dev/null)" != nsfs ] || umount -l "$file"
	done
}

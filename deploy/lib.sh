# SPDX-License-Identifier: Apache-2.0
# Steps that the demo and the cluster tests share; sourced with `set -euo pipefail` in force.
# They expect KUBECONFIG, $root (the checkout), $programs (folder of kubectl and helm) and $work
# (a folder of ours for certificates, tokens and logs).

kube() { "$programs/kubectl" "$@"; }

# token_make: a fresh access token, gpx_ + 30 characters + their CRC-32 in base62.
token_make() {
	python3 - <<-'P'
		import secrets, string, zlib
		digits = string.digits + string.ascii_uppercase + string.ascii_lowercase
		body = "".join(secrets.choice(digits) for _ in range(30))
		crc, check = zlib.crc32(body.encode()), ""
		for _ in range(6):
		    crc, digit = divmod(crc, 62)
		    check = digits[digit] + check
		print(f"gpx_{body}{check}")
	P
}

# ground_make [NODE PATH]: what has to be there before the chart, in one call: the namespace, the first
# platform admin's token (made once, kept in $work/admin.token) and, for clusters without a
# provisioner, a volume on one node.
ground_make() {
	if [ ! -s "$work/admin.token" ]; then
		(umask 077 && token_make >"$work/admin.token")
	fi
	{
		ground_objects
		[ $# -eq 0 ] || ground_volume "$@"
	} | kube apply -f - >/dev/null
}

ground_objects() {
	cat <<-Y
		apiVersion: v1
		kind: Namespace
		metadata:
		  name: gpuaas-system
		  labels: {pod-security.kubernetes.io/enforce: privileged}
		---
		apiVersion: v1
		kind: Secret
		metadata: {name: gpuaas-bootstrap, namespace: gpuaas-system}
		data: {token: $(base64 -w0 "$work/admin.token")}
	Y
}

ground_volume() {
	cat <<-Y
		---
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: gpuaas-server}
		spec:
		  capacity: {storage: 1Gi}
		  accessModes: [ReadWriteOnce]
		  persistentVolumeReclaimPolicy: Retain
		  storageClassName: ""
		  local: {path: $2}
		  nodeAffinity:
		    required:
		      nodeSelectorTerms:
		        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$1]}]
	Y
}

chart_install() { # chart_install [helm options]
	"$programs/helm" upgrade --install gpuaas "$root/deploy/chart/gpuaas" --namespace gpuaas-system "$@" >/dev/null
}

part_ready() {
	kube -n gpuaas-system rollout status "$1" --timeout=120s >/dev/null && return
	kube -n gpuaas-system get pods -o wide >&2 || true
	kube -n gpuaas-system get events --sort-by=.lastTimestamp 2>/dev/null | tail -15 >&2 || true
	kube -n gpuaas-system logs "$1" --tail=20 >&2 || true
	echo "install: $1 did not become ready" >&2
	return 1
}

# parts_ready: waits until agents, scheduler and server are ready; shows what is wrong otherwise.
parts_ready() {
	local part pid pids=()
	for part in ds/gpuaas-agent deploy/gpuaas-scheduler deploy/gpuaas-server; do
		part_ready "$part" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || return 1
	done
	kube -n gpuaas-system get secret gpuaas-server-tls -o jsonpath='{.data.ca\.crt}' | base64 -d >"$work/ca.crt"
}

# process_start NAME COMMAND...: in the background, log and identity (pid and start time) in $work.
process_start() {
	local name=$1
	shift
	setsid "$@" >"$work/$name.log" 2>&1 </dev/null &
	echo "$! $(awk '{print $22}' "/proc/$!/stat")" >"$work/$name.pid"
}

# process_stop NAME: ends it if it is still the process that was started.
process_stop() {
	local pid start
	[ -f "$work/$1.pid" ] || return 0
	read -r pid start <"$work/$1.pid"
	if [ "$(awk '{print $22}' "/proc/$pid/stat" 2>/dev/null)" = "$start" ]; then
		kill "$pid" 2>/dev/null || true
		for _ in $(seq 50); do
			[ -d "/proc/$pid" ] || break
			sleep 0.1
		done
	fi
	rm -f "$work/$1.pid"
}

# pod_targets PART PORT: the addresses of a part's pods as a YAML list.
pod_targets() {
	kube -n gpuaas-system get pods -l "app.kubernetes.io/name=$1" -o json |
		jq -c --arg port "$2" '[.items[].status.podIP | . + ":" + $port]'
}

# What follows the number of the testbed (testbed/lib.sh), so that two can be up side by side.
testbed_number=${GPUAAS_TESTBED:-0}
prometheus_address=127.0.0.1:$((9490 + testbed_number))

# testbed_install [helm options]: the chart on the testbed, as its demo and the cluster tests want it.
testbed_install() {
	local net=10.99.$testbed_number
	chart_install -f "$root/deploy/demo-values.yaml" --set "server.extraAddresses={$net.11,$net.12,$net.13}" "$@"
}

# prometheus_start: the Prometheus of this machine with the pods as static targets (a container
# that restarts keeps its pod's address).
prometheus_start() {
	cat >"$work/prometheus.yaml" <<-Y
		global: {scrape_interval: 5s}
		scrape_configs:
		  - job_name: gpuaas-agent
		    static_configs: [{targets: $(pod_targets gpuaas-agent 9400)}]
		  - job_name: gpuaas-scheduler
		    static_configs: [{targets: $(pod_targets gpuaas-scheduler 9401)}]
		  - job_name: gpuaas-server
		    scheme: https
		    tls_config: {ca_file: $work/ca.crt, server_name: gpuaas-server}
		    static_configs: [{targets: $(pod_targets gpuaas-server 8443)}]
	Y
	process_start prometheus prometheus --config.file="$work/prometheus.yaml" \
		--storage.tsdb.path="$work/prometheus" --web.listen-address="$prometheus_address" --log.level=warn
}

# SPDX-License-Identifier: Apache-2.0
# The control plane, in the host's namespaces: etcd, API server, controller manager, scheduler.

# api_get PATH: asks the API server as administrator.
api_get() {
	curl -fsS --max-time 5 --cacert "$tb_state/pki/ca.crt" --cert "$tb_state/pki/admin.crt" \
		--key "$tb_state/pki/admin.key" "$tb_api$1"
}

api_ready() { [ "$(api_get /readyz)" = ok ]; }

# No fsync: the data is thrown away with the testbed, and the disk may be slow.
etcd_start() {
	local peer=http://127.0.0.1:$((tb_etcd_port + 1)) client=http://127.0.0.1:$tb_etcd_port
	program_start etcd control "$tb_bin/etcd" --name testbed --data-dir "$tb_state/etcd" \
		--unsafe-no-fsync --log-level warn \
		--listen-client-urls "$client" --advertise-client-urls "$client" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
		--initial-cluster "testbed=$peer"
}

# Webhooks and aggregated APIs are called at the pods' addresses (aggregator routing): the host
# has a route to the pods, but no kube-proxy of its own. In flight limits are for 200 pods at once.
apiserver_start() {
	local pki=$tb_state/pki issuer=https://kubernetes.default.svc
	program_start apiserver control "$tb_bin/kube-apiserver" \
		--etcd-servers "http://127.0.0.1:$tb_etcd_port" \
		--bind-address 0.0.0.0 --secure-port "$tb_api_port" --advertise-address "$tb_host_ip" \
		--service-cluster-ip-range "$tb_service_net.0.0/16" --enable-aggregator-routing \
		--client-ca-file "$pki/ca.crt" \
		--tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
		--kubelet-certificate-authority "$pki/ca.crt" \
		--kubelet-client-certificate "$pki/apiserver-kubelet.crt" \
		--kubelet-client-key "$pki/apiserver-kubelet.key" \
		--kubelet-preferred-address-types InternalIP \
		--service-account-issuer "$issuer" --api-audiences "$issuer" \
		--service-account-signing-key-file "$pki/sa.key" --service-account-key-file "$pki/sa.pub" \
		--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
		--allow-privileged --profiling=false \
		--max-requests-inflight 800 --max-mutating-requests-inflight 400
}

kcm_start() {
	local pki=$tb_state/pki
	program_start kcm control "$tb_bin/kube-controller-manager" \
		--kubeconfig "$pki/kcm.kubeconfig" --authentication-kubeconfig "$pki/kcm.kubeconfig" \
		--authorization-kubeconfig "$pki/kcm.kubeconfig" \
		--bind-address 127.0.0.1 --secure-port "$tb_kcm_port" --leader-elect=false \
		--use-service-account-credentials --root-ca-file "$pki/ca.crt" \
		--service-account-private-key-file "$pki/sa.key" \
		--cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" \
		--kube-api-qps 200 --kube-api-burst 400 --concurrent-job-syncs 10 --profiling=false
}

scheduler_start() {
	cat >"$tb_state/scheduler.yaml" <<-L
		apiVersion: kubescheduler.config.k8s.io/v1
		kind: KubeSchedulerConfiguration
		leaderElection: {leaderElect: false}
		enableProfiling: false
		clientConnection: {kubeconfig: $tb_state/pki/scheduler.kubeconfig, qps: 200, burst: 400}
	L
	program_start scheduler control "$tb_bin/kube-scheduler" --config "$tb_state/scheduler.yaml" \
		--authentication-kubeconfig "$tb_state/pki/scheduler.kubeconfig" \
		--authorization-kubeconfig "$tb_state/pki/scheduler.kubeconfig" \
		--bind-address 127.0.0.1 --secure-port "$tb_scheduler_port"
}

control_wait() {
	program_wait etcd 30 curl -fsS "http://127.0.0.1:$tb_etcd_port/health"
	program_wait apiserver 120 api_ready
}

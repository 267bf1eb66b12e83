# SPDX-License-Identifier: Apache-2.0
# The control plane, in the host's namespaces: etcd, API server, controller manager, scheduler,
# and the cluster's DNS.

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
	write_file "$tb_state/scheduler.yaml" <<-L
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

# It answers for the cluster's names only: pods have no way to the world outside.
coredns_start() {
	write_file "$tb_state/Corefile" <<-L
		.:$tb_dns_port {
		  bind $tb_host_ip
		  ready $tb_host_ip:$((tb_dns_port + 1))
		  errors
		  cache 5
		  kubernetes cluster.local in-addr.arpa {
		    kubeconfig $tb_state/pki/coredns.kubeconfig
		    ttl 5
		  }
		}
	L
	program_start coredns control "$tb_bin/coredns" -conf "$tb_state/Corefile"
}

coredns_ready() { curl -fsS --max-time 2 "http://$tb_host_ip:$((tb_dns_port + 1))/ready"; }

# The Service has no selector: its one endpoint is the program on the host.
coredns_publish() {
	"$tb_bin/kubectl" --kubeconfig "$tb_state/admin.kubeconfig" apply -f - <<-L
		apiVersion: rbac.authorization.k8s.io/v1
		kind: ClusterRole
		metadata: {name: system:coredns}
		rules:
		- {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
		- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
		---
		apiVersion: rbac.authorization.k8s.io/v1
		kind: ClusterRoleBinding
		metadata: {name: system:coredns}
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: system:coredns}]
		---
		apiVersion: v1
		kind: Service
		metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
		spec:
		  clusterIP: $tb_dns_ip
		  ports:
		  - {name: dns, port: 53, protocol: UDP, targetPort: $tb_dns_port}
		  - {name: dns-tcp, port: 53, protocol: TCP, targetPort: $tb_dns_port}
		---
		apiVersion: discovery.k8s.io/v1
		kind: EndpointSlice
		metadata:
		  name: kube-dns-host
		  namespace: kube-system
		  labels: {kubernetes.io/service-name: kube-dns, endpointslice.kubernetes.io/managed-by: testbed}
		addressType: IPv4
		ports:
		- {name: dns, port: $tb_dns_port, protocol: UDP}
		- {name: dns-tcp, port: $tb_dns_port, protocol: TCP}
		endpoints: [{addresses: ["$tb_host_ip"], conditions: {ready: true}}]
	L
}

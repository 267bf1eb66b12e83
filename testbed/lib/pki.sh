# SPDX-License-Identifier: Apache-2.0
# Certificates and kubeconfig files. One authority signs everything; keys are on P-256, which
# takes milliseconds. Files that exist are kept, so this can run again.

pki_ca() {
	[ ! -f ca.crt ] || return 0
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
		-subj "/CN=$tb_prefix-testbed" -keyout ca.key -out .ca.crt \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign
	mv .ca.crt ca.crt
}

# pki_cert NAME SUBJECT [ALTNAMES]: a pair NAME.key, NAME.crt for clients and servers.
pki_cert() {
	[ ! -f "$1.crt" ] || return 0
	{
		echo "basicConstraints = CA:FALSE"
		echo "keyUsage = critical,digitalSignature"
		echo "extendedKeyUsage = serverAuth,clientAuth"
		[ -z "${3:-}" ] || echo "subjectAltName = $3"
	} >"$1.ext"
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "$2" \
		-keyout "$1.key" -out "$1.csr"
	openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -days 3650 -extfile "$1.ext" \
		-set_serial "0x$(openssl rand -hex 16)" -out ".$1.crt"
	rm "$1.ext" "$1.csr"
	mv ".$1.crt" "$1.crt"
}

# kubeconfig USER CERT SERVER FILE: certificates inside, so that the file works wherever it goes.
kubeconfig() {
	write_file "$4" <<-L
		apiVersion: v1
		kind: Config
		current-context: $tb_prefix-testbed
		contexts:
		- {name: $tb_prefix-testbed, context: {cluster: $tb_prefix-testbed, user: $1}}
		clusters:
		- name: $tb_prefix-testbed
		  cluster: {server: "$3", certificate-authority-data: $(base64 -w0 <ca.crt)}
		users:
		- name: $1
		  user: {client-certificate-data: $(base64 -w0 <"$2.crt"), client-key-data: $(base64 -w0 <"$2.key")}
	L
}

# pki_certs NODES: all pairs, side by side.
pki_certs() {
	local i pid pids=()
	pki_start() {
		"$@" &
		pids+=($!)
	}
	pki_start pki_cert apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,\
DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,\
IP:127.0.0.1,IP:$tb_host_ip,IP:$tb_service_net.0.1"
	pki_start pki_cert admin "/O=system:masters/CN=admin"
	pki_start pki_cert apiserver-kubelet "/O=system:masters/CN=kube-apiserver-kubelet-client"
	pki_start pki_cert kcm /CN=system:kube-controller-manager
	pki_start pki_cert scheduler /CN=system:kube-scheduler
	pki_start pki_cert kube-proxy /CN=system:kube-proxy
	pki_start pki_cert coredns /CN=system:coredns
	for ((i = 1; i <= $1; i++)); do
		pki_start pki_cert "node$i" "/O=system:nodes/CN=system:node:node$i" "DNS:node$i,IP:$(node_ip "$i")"
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
}

pki_make_all() {
	local i nodes=$1
	pki_ca
	pki_certs "$nodes"
	if [ ! -f sa.pub ]; then
		openssl genrsa -out sa.key 2048
		openssl rsa -in sa.key -pubout -out sa.pub
	fi
	kubeconfig admin admin "$tb_api" "$tb_state/admin.kubeconfig"
	kubeconfig kcm kcm "$tb_api" kcm.kubeconfig
	kubeconfig scheduler scheduler "$tb_api" scheduler.kubeconfig
	kubeconfig coredns coredns "$tb_api" coredns.kubeconfig
	kubeconfig kube-proxy kube-proxy "https://$tb_host_ip:$tb_api_port" kube-proxy.kubeconfig
	for ((i = 1; i <= nodes; i++)); do
		kubeconfig kubelet "node$i" "https://$tb_host_ip:$tb_api_port" "node$i.kubeconfig"
	done
}

pki_make() {
	mkdir -p "$tb_state/pki" && chmod 700 "$tb_state/pki"
	# Not as a condition itself: there the shell would not stop at a step that fails.
	(cd "$tb_state/pki" && pki_make_all "$1") >>"$tb_state/log/pki.log" 2>&1 9<&- &
	wait $! || program_blame pki "no certificates"
}

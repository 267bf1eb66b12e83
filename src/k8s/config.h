// SPDX-License-Identifier: Apache-2.0
// Where the API server is and who we are there: kubeconfig files (tokens, client certificates,
// inline or by file) and the in-cluster service account, whose token file is read again so that
// rotation works. All text lies in the arena. What a kubeconfig may ask for and we cannot do
// (exec plug-ins, passwords, proxies) is ERR_UNSUPPORTED with its name.
#pragma once

#include "base/arena.h"

struct k8s_config {
	const char *server; // "https://10.96.0.1:443"; a path after the host is kept
	struct str ca_pem;  // empty: system CAs
	struct str cert_pem, key_pem;
	const char *token;      // static bearer token, or NULL
	const char *token_file; // read each minute and once on 401, or NULL
	const char *namespace_; // of the context or the pod, "default" if unknown
	bool insecure_skip_verify;
	const char *tls_server_name; // NULL: the host of server
};

// path NULL: $KUBECONFIG (a list of files like kubectl's), else ~/.kube/config.
MUST_USE err_status k8s_config_load_file(struct arena *arena, const char *path,
					 struct k8s_config *ret, struct err *err);
// A named context instead of the current one; context NULL: the current one.
MUST_USE err_status k8s_config_load_context(struct arena *arena, const char *path,
					    const char *context, struct k8s_config *ret,
					    struct err *err);
// mount: NULL means /var/run/secrets/kubernetes.io/serviceaccount.
MUST_USE err_status k8s_config_load_in_cluster(struct arena *arena, const char *mount,
					       struct k8s_config *ret, struct err *err);
// As a program's option says: "in-cluster" or the path of a kubeconfig (NULL as above).
MUST_USE err_status k8s_config_load(struct arena *arena, const char *where, struct k8s_config *ret,
				    struct err *err);
// A kubeconfig's text; folder is what relative file names in it start from. For tests and
// fuzzing; reads the files that the text names.
MUST_USE err_status k8s_config_parse(struct arena *arena, struct str text, const char *folder,
				     struct k8s_config *ret, struct err *err);

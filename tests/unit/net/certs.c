// SPDX-License-Identifier: Apache-2.0
#include "certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

const char *certs_path(const struct certs *certs, const char *name)
{
	static char paths[4][160];
	static size_t next;
	char *path = paths[next++ % 4];
	(void)snprintf(path, sizeof paths[0], "%s/%s", certs->folder, name);
	return path;
}

static void write_pem(const struct certs *certs, const char *name, X509 *cert, EVP_PKEY *key)
{
	FILE *file = fopen(certs_path(certs, name), "w");
	ASSERT(file != NULL);
	int rc = cert != NULL ? PEM_write_X509(file, cert)
			      : PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
	ASSERT(rc == 1);
	(void)fclose(file);
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	ASSERT(extension != NULL);
	(void)X509_add_ext(cert, extension, -1);
	X509_EXTENSION_free(extension);
}

static X509 *make_cert(EVP_PKEY *key, const char *cn, long from_s, long to_s)
{
	static long serial = 1;
	X509 *cert = X509_new();
	ASSERT(cert != NULL && key != NULL);
	(void)X509_set_version(cert, 2);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(cert), serial++);
	(void)X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
	(void)X509_gmtime_adj(X509_getm_notAfter(cert), to_s);
	(void)X509_set_pubkey(cert, key);
	X509_NAME *subject = X509_get_subject_name(cert);
	(void)X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)cn,
					 -1, -1, 0);
	return cert;
}

static X509 *make_ca(EVP_PKEY *key, const char *cn)
{
	X509 *cert = make_cert(key, cn, -3600, 86400);
	(void)X509_set_issuer_name(cert, X509_get_subject_name(cert));
	add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign");
	int rc = X509_sign(cert, key, EVP_sha256());
	ASSERT(rc > 0);
	return cert;
}

void certs_init(struct certs *certs)
{
	(void)snprintf(certs->folder, sizeof certs->folder, "/tmp/net_test.XXXXXX");
	const char *made = mkdtemp(certs->folder);
	ASSERT(made != NULL);
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other_key = EVP_EC_gen("P-256");
	X509 *other = make_ca(other_key, "other CA");
	certs->ca_key = key;
	certs->ca_cert = make_ca(key, "test CA");
	write_pem(certs, "ca.pem", certs->ca_cert, NULL);
	write_pem(certs, "other-ca.pem", other, NULL);
	X509_free(other);
	EVP_PKEY_free(other_key);
}

void certs_issue(struct certs *certs, const struct cert_request *request)
{
	char file[80];
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = make_cert(key, request->cn, request->from_s, request->to_s);
	(void)X509_set_issuer_name(cert, X509_get_subject_name(certs->ca_cert));
	if (request->hosts != NULL)
		add_extension(cert, certs->ca_cert, NID_subject_alt_name, request->hosts);
	int rc = X509_sign(cert, certs->ca_key, EVP_sha256());
	ASSERT(rc > 0);
	(void)snprintf(file, sizeof file, "%s.pem", request->name);
	write_pem(certs, file, cert, NULL);
	(void)snprintf(file, sizeof file, "%s.key", request->name);
	write_pem(certs, file, NULL, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

void certs_remove(struct certs *certs)
{
	char command[100];
	X509_free(certs->ca_cert);
	EVP_PKEY_free(certs->ca_key);
	(void)snprintf(command, sizeof command, "rm -rf %s", certs->folder);
	int rc = system(command);
	ASSERT(rc == 0);
}

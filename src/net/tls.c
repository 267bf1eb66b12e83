// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include "net/tls_ctx.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <stdlib.h>
#include <unistd.h>

err_status tls_fail(struct err *err, err_status status, const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);
	// Files that cannot be opened leave an errno in the queue, not a reason.
	if (ERR_SYSTEM_ERROR(code))
		reason = strerror(ERR_GET_REASON(code));
	ERR_clear_error();
	if (reason == NULL)
		return err_set(err, status, "%s", what);
	return err_set(err, status, "%s: %s", what, reason);
}

// An encrypted key must not stop a daemon at a question on the terminal.
static int no_passphrase(char *out, int out_bytes, int writing, void *arg)
{
	(void)out;
	(void)out_bytes;
	(void)writing;
	(void)arg;
	return -1;
}

static SSL_CTX *make_ssl_ctx(const SSL_METHOD *method)
{
	SSL_CTX *ssl = SSL_CTX_new(method);
	if (ssl == NULL)
		return NULL;
	(void)SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
					       SSL_OP_CIPHER_SERVER_PREFERENCE);
	(void)SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
					    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					    SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_default_passwd_cb(ssl, no_passphrase);
	if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
		SSL_CTX_free(ssl);
		return NULL;
	}
	return ssl;
}

void tls_ctx_free(struct tls_ctx *ctx)
{
	if (ctx == NULL)
		return;
	SSL_CTX_free(ctx->ssl);
	free(ctx->cert_file);
	free(ctx->key_file);
	free(ctx->client_ca_file);
	free(ctx);
}

static void ctx_freep(struct tls_ctx **ctx) { tls_ctx_free(*ctx); }
static void ssl_ctx_freep(SSL_CTX **ssl) { SSL_CTX_free(*ssl); }
static void bio_freep(BIO **bio) { BIO_free_all(*bio); }
static void x509_freep(X509 **cert) { X509_free(*cert); }
static void pkey_freep(EVP_PKEY **key) { EVP_PKEY_free(*key); }

// ---- server

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
		       const unsigned char *offered, unsigned offered_bytes, void *arg)
{
	static const unsigned char spoken[] = "\x02h2\x08http/1.1\x08http/1.0";
	unsigned skip = arg == NULL ? 3 : 0; // of h2
	unsigned char *chosen = NULL;
	(void)ssl;
	if (SSL_select_next_proto(&chosen, out_bytes, spoken + skip,
				  (unsigned)sizeof spoken - 1 - skip, offered,
				  offered_bytes) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static err_status load_files(SSL_CTX *ssl, const char *cert_file, const char *key_file,
			     struct err *err)
{
	char what[300];
	(void)snprintf(what, sizeof what, "certificate file %s", cert_file);
	if (SSL_CTX_use_certificate_chain_file(ssl, cert_file) != 1)
		return tls_fail(err, ERR_INVALID, what);
	(void)snprintf(what, sizeof what, "key file %s", key_file);
	if (SSL_CTX_use_PrivateKey_file(ssl, key_file, SSL_FILETYPE_PEM) != 1)
		return tls_fail(err, ERR_INVALID, what);
	if (SSL_CTX_check_private_key(ssl) != 1) {
		(void)snprintf(what, sizeof what, "key %s does not fit certificate %s", key_file,
			       cert_file);
		return tls_fail(err, ERR_INVALID, what);
	}
	return ERR_OK;
}

static err_status load_server(const struct tls_ctx *ctx, SSL_CTX **ret_ssl, struct err *err)
{
	static const unsigned char session_context[] = "gpuaas";
	AUTO(ssl_ctx_freep) SSL_CTX *ssl = make_ssl_ctx(TLS_server_method());
	if (ssl == NULL)
		return tls_fail(err, ERR_INTERNAL, "TLS context");
	if (load_files(ssl, ctx->cert_file, ctx->key_file, err) != ERR_OK)
		return ERR_INVALID;
	// The argument is a flag: any pointer that is not NULL.
	static bool with_h2 = true;
	SSL_CTX_set_alpn_select_cb(ssl, choose_alpn, ctx->offer_h2 ? &with_h2 : NULL);
	(void)SSL_CTX_set_session_id_context(ssl, session_context, sizeof session_context - 1);
	if (ctx->client_ca_file != NULL) {
		STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ctx->client_ca_file);
		if (names == NULL || SSL_CTX_load_verify_file(ssl, ctx->client_ca_file) != 1) {
			sk_X509_NAME_pop_free(names, X509_NAME_free);
			return tls_fail(err, ERR_INVALID, "CA file for clients");
		}
		SSL_CTX_set_client_CA_list(ssl, names);
		SSL_CTX_set_verify(
			ssl,
			SSL_VERIFY_PEER |
				(ctx->client_cert_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
			NULL);
	}
	*ret_ssl = TAKE(ssl);
	return ERR_OK;
}

static bool copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text == NULL ? NULL : strdup(text);
	return text == NULL || *ret_copy != NULL;
}

err_status tls_server_new(const struct tls_server_config *config, struct tls_ctx **ret,
			  struct err *err)
{
	AUTO(ctx_freep) struct tls_ctx *ctx = calloc(1, sizeof *ctx);
	ASSERT(config->cert_file != NULL && config->key_file != NULL);
	if (ctx == NULL || !copy_text(config->cert_file, &ctx->cert_file) ||
	    !copy_text(config->key_file, &ctx->key_file) ||
	    !copy_text(config->client_ca_file, &ctx->client_ca_file))
		return err_set(err, ERR_LIMIT, "no memory for a TLS context");
	ctx->is_server = true;
	ctx->client_cert_required = config->client_cert_required;
	ctx->offer_h2 = config->offer_h2;
	err_status status = load_server(ctx, &ctx->ssl, err);
	if (status != ERR_OK)
		return status;
	*ret = TAKE(ctx);
	return ERR_OK;
}

err_status tls_server_reload(struct tls_ctx *ctx, struct err *err)
{
	SSL_CTX *fresh = NULL;
	ASSERT(ctx->is_server);
	err_status status = load_server(ctx, &fresh, err);
	if (status != ERR_OK)
		return status;
	SSL_CTX_free(ctx->ssl); // open connections hold their own reference
	ctx->ssl = fresh;
	return ERR_OK;
}

// ---- client

static BIO *bio_of(struct str pem)
{
	return pem.len > INT32_MAX ? NULL : BIO_new_mem_buf(pem.data, (int)pem.len);
}

static err_status load_ca_pem(SSL_CTX *ssl, struct str pem, struct err *err)
{
	AUTO(bio_freep) BIO *bio = bio_of(pem);
	X509_STORE *store = SSL_CTX_get_cert_store(ssl);
	size_t count = 0;
	if (bio == NULL)
		return tls_fail(err, ERR_LIMIT, "CA certificates");
	for (;; count++) {
		AUTO(x509_freep) X509 *cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
		if (cert == NULL)
			break;
		if (X509_STORE_add_cert(store, cert) != 1)
			return tls_fail(err, ERR_INVALID, "CA certificate");
	}
	// The end of the text shows as "no start line"; anything else is a broken certificate.
	bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	if (count == 0 || !at_end)
		return tls_fail(err, ERR_INVALID, "CA certificates are not PEM");
	ERR_clear_error();
	return ERR_OK;
}

static err_status load_cert_pem(SSL_CTX *ssl, struct str cert_pem, struct str key_pem,
				struct err *err)
{
	AUTO(bio_freep) BIO *cert_bio = bio_of(cert_pem);
	AUTO(bio_freep) BIO *key_bio = bio_of(key_pem);
	if (cert_bio == NULL || key_bio == NULL)
		return tls_fail(err, ERR_LIMIT, "client certificate");
	AUTO(x509_freep) X509 *cert = PEM_read_bio_X509(cert_bio, NULL, no_passphrase, NULL);
	if (cert == NULL || SSL_CTX_use_certificate(ssl, cert) != 1)
		return tls_fail(err, ERR_INVALID, "client certificate");
	for (;;) {
		AUTO(x509_freep)
		X509 *link = PEM_read_bio_X509(cert_bio, NULL, no_passphrase, NULL);
		if (link == NULL)
			break;
		if (SSL_CTX_add1_chain_cert(ssl, link) != 1)
			return tls_fail(err, ERR_INVALID, "chain of the client certificate");
	}
	ERR_clear_error();
	AUTO(pkey_freep)
	EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, no_passphrase, NULL);
	if (key == NULL || SSL_CTX_use_PrivateKey(ssl, key) != 1)
		return tls_fail(err, ERR_INVALID, "key of the client certificate");
	return ERR_OK;
}

static err_status load_trust(SSL_CTX *ssl, const struct tls_client_config *config, struct err *err)
{
	if (config->insecure_skip_verify) {
		SSL_CTX_set_verify(ssl, SSL_VERIFY_NONE, NULL);
		return ERR_OK;
	}
	SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	if (config->ca_file != NULL) {
		char what[300];
		(void)snprintf(what, sizeof what, "CA file %s", config->ca_file);
		if (access(config->ca_file, R_OK) != 0)
			return err_set(err, ERR_INVALID, "%s: %s", what, strerror(errno));
		if (SSL_CTX_load_verify_file(ssl, config->ca_file) != 1)
			return tls_fail(err, ERR_INVALID, what);
		return ERR_OK;
	}
	if (config->ca_pem.len > 0)
		return load_ca_pem(ssl, config->ca_pem, err);
	if (SSL_CTX_set_default_verify_paths(ssl) != 1)
		return tls_fail(err, ERR_INVALID, "the system's CA certificates");
	return ERR_OK;
}

err_status tls_client_new(const struct tls_client_config *config, struct tls_ctx **ret,
			  struct err *err)
{
	AUTO(ctx_freep) struct tls_ctx *ctx = calloc(1, sizeof *ctx);
	ASSERT((config->cert_file == NULL) == (config->key_file == NULL));
	ASSERT((config->cert_pem.len == 0) == (config->key_pem.len == 0));
	if (ctx == NULL)
		return err_set(err, ERR_LIMIT, "no memory for a TLS context");
	ctx->ssl = make_ssl_ctx(TLS_client_method());
	if (ctx->ssl == NULL)
		return tls_fail(err, ERR_INTERNAL, "TLS context");
	err_status status = load_trust(ctx->ssl, config, err);
	if (status == ERR_OK && config->cert_file != NULL)
		status = load_files(ctx->ssl, config->cert_file, config->key_file, err);
	else if (status == ERR_OK && config->cert_pem.len > 0)
		status = load_cert_pem(ctx->ssl, config->cert_pem, config->key_pem, err);
	if (status != ERR_OK)
		return status;
	*ret = TAKE(ctx);
	return ERR_OK;
}

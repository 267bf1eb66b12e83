// SPDX-License-Identifier: Apache-2.0
#include "net/tls_conn.h"

#include "net/tls_ctx.h"
#include "sys/fault.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>

struct tls_conn {
	SSL *ssl;
	char host[256]; // whom a client expects; "" at servers
};

// ---- the socket under OpenSSL: as its own, but without SIGPIPE

static int fd_of(BIO *bio) { return (int)(intptr_t)BIO_get_data(bio); }

static bool would_block(void) { return errno == EAGAIN || errno == EINTR; }

static int bio_write(BIO *bio, const char *data, int count)
{
	BIO_clear_retry_flags(bio);
	ssize_t sent = fault_due() ? -1 : send(fd_of(bio), data, (size_t)count, MSG_NOSIGNAL);
	if (sent < 0 && would_block())
		BIO_set_retry_write(bio);
	return (int)sent;
}

static int bio_read(BIO *bio, char *out, int count)
{
	BIO_clear_retry_flags(bio);
	ssize_t got = fault_due() ? -1 : recv(fd_of(bio), out, (size_t)count, 0);
	if (got < 0 && would_block())
		BIO_set_retry_read(bio);
	if (got == 0)
		BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
	return (int)got;
}

static long bio_ctrl(BIO *bio, int command, long number, void *arg)
{
	(void)number;
	(void)arg;
	if (command == BIO_CTRL_EOF)
		return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO *make_bio(int fd)
{
	static BIO_METHOD *method; // made once, lives as long as the program
	if (method == NULL) {
		method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
		if (method == NULL)
			return NULL;
		(void)BIO_meth_set_write(method, bio_write);
		(void)BIO_meth_set_read(method, bio_read);
		(void)BIO_meth_set_ctrl(method, bio_ctrl);
	}
	BIO *bio = BIO_new(method);
	if (bio != NULL) {
		BIO_set_data(bio, (void *)(intptr_t)fd);
		BIO_set_init(bio, 1);
	}
	return bio;
}

// ---- making

void tls_conn_free(struct tls_conn *conn)
{
	if (conn == NULL)
		return;
	SSL_free(conn->ssl);
	free(conn);
}

static void conn_freep(struct tls_conn **conn) { tls_conn_free(*conn); }

static struct tls_conn *make_conn(const struct tls_ctx *ctx, int fd)
{
	AUTO(conn_freep) struct tls_conn *conn = calloc(1, sizeof *conn);
	if (conn == NULL)
		return NULL;
	conn->ssl = SSL_new(ctx->ssl);
	BIO *bio = conn->ssl == NULL ? NULL : make_bio(fd);
	if (bio == NULL)
		return NULL;
	SSL_set_bio(conn->ssl, bio, bio);
	return TAKE(conn);
}

err_status tls_conn_accept(const struct tls_ctx *ctx, int fd, struct tls_conn **ret,
			   struct err *err)
{
	ASSERT(ctx->is_server);
	struct tls_conn *conn = make_conn(ctx, fd);
	if (conn == NULL)
		return tls_fail(err, ERR_LIMIT, "TLS connection");
	SSL_set_accept_state(conn->ssl);
	*ret = conn;
	return ERR_OK;
}

static bool is_address(const char *host)
{
	unsigned char bytes[16];
	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool expect_host(struct tls_conn *conn)
{
	SSL *ssl = conn->ssl;
	char *host = conn->host;
	if (is_address(host))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

err_status tls_conn_connect(const struct tls_ctx *ctx, int fd, const char *host, bool offer_h2,
			    struct tls_conn **ret, struct err *err)
{
	static const unsigned char protocols[] = "\x02h2\x08http/1.1";
	size_t skip = offer_h2 ? 0 : 3;
	ASSERT(!ctx->is_server && host != NULL);
	AUTO(conn_freep) struct tls_conn *conn = make_conn(ctx, fd);
	if (conn == NULL)
		return tls_fail(err, ERR_LIMIT, "TLS connection");
	(void)snprintf(conn->host, sizeof conn->host, "%s", host);
	if (strlen(host) >= sizeof conn->host || !expect_host(conn))
		return tls_fail(err, ERR_INVALID, "host name for TLS");
	if (SSL_set_alpn_protos(conn->ssl, protocols + skip,
				(unsigned)(sizeof protocols - 1 - skip)) != 0)
		return tls_fail(err, ERR_LIMIT, "ALPN");
	SSL_set_connect_state(conn->ssl);
	*ret = TAKE(conn);
	return ERR_OK;
}

// ---- moving bytes

static tls_io fail_io(const struct tls_conn *conn, int error, struct err *err)
{
	int saved_errno = errno;
	long verified = SSL_get_verify_result(conn->ssl);
	if (error == SSL_ERROR_SSL &&
	    ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ERR_clear_error();
		(void)err_set(err, ERR_UNAVAILABLE, "the connection was cut");
	} else if (error == SSL_ERROR_SSL && verified != X509_V_OK && conn->host[0] != '\0') {
		ERR_clear_error();
		(void)err_set(err, ERR_PROTOCOL, "certificate of %s: %s", conn->host,
			      X509_verify_cert_error_string(verified));
	} else if (error == SSL_ERROR_SYSCALL && saved_errno != 0) {
		ERR_clear_error();
		(void)err_set(err, ERR_UNAVAILABLE, "the connection failed: %s",
			      strerror(saved_errno));
	} else {
		(void)tls_fail(err, ERR_PROTOCOL, "TLS");
	}
	return TLS_FAILED;
}

static tls_io result_io(const struct tls_conn *conn, int rc, struct err *err)
{
	int error = SSL_get_error(conn->ssl, rc);
	switch (error) {
	case SSL_ERROR_NONE: return TLS_DONE;
	case SSL_ERROR_WANT_READ: return TLS_WANT_READ;
	case SSL_ERROR_WANT_WRITE: return TLS_WANT_WRITE;
	case SSL_ERROR_ZERO_RETURN: return TLS_ENDED;
	default: return fail_io(conn, error, err);
	}
}

tls_io tls_conn_handshake(struct tls_conn *conn, struct err *err)
{
	ERR_clear_error();
	errno = 0;
	return result_io(conn, SSL_do_handshake(conn->ssl), err);
}

tls_io tls_conn_read(struct tls_conn *conn, void *out, size_t out_bytes, size_t *ret_count,
		     struct err *err)
{
	ERR_clear_error();
	errno = 0;
	return result_io(conn, SSL_read_ex(conn->ssl, out, out_bytes, ret_count), err);
}

tls_io tls_conn_write(struct tls_conn *conn, struct str data, size_t *ret_count, struct err *err)
{
	ASSERT(data.len > 0);
	ERR_clear_error();
	errno = 0;
	tls_io io = result_io(conn, SSL_write_ex(conn->ssl, data.data, data.len, ret_count), err);
	if (io != TLS_ENDED)
		return io;
	// A socket that fails after the peer's goodbye: OpenSSL tells of the goodbye alone.
	(void)err_set(err, ERR_UNAVAILABLE, "the connection was cut");
	return TLS_FAILED;
}

void tls_conn_send_end(struct tls_conn *conn)
{
	ERR_clear_error();
	if (SSL_is_init_finished(conn->ssl))
		(void)SSL_shutdown(conn->ssl);
	ERR_clear_error();
}

bool tls_conn_is_h2(const struct tls_conn *conn)
{
	const unsigned char *name = NULL;
	unsigned name_bytes = 0;
	SSL_get0_alpn_selected(conn->ssl, &name, &name_bytes);
	return name_bytes == 2 && memcmp(name, "h2", 2) == 0;
}

void tls_conn_peer_name(const struct tls_conn *conn, char *out, size_t out_bytes)
{
	X509 *cert = SSL_get0_peer_certificate(conn->ssl);
	ASSERT(out_bytes > 0);
	out[0] = '\0';
	if (cert == NULL || SSL_get_verify_result(conn->ssl) != X509_V_OK)
		return;
	X509_NAME *subject = X509_get_subject_name(cert);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	// Two names, or one with a NUL inside, are not one name.
	if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
		return;
	unsigned char *text = NULL;
	int length = ASN1_STRING_to_UTF8(
		&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (length > 0 && (size_t)length < out_bytes && strlen((char *)text) == (size_t)length)
		(void)snprintf(out, out_bytes, "%s", (char *)text);
	if (length >= 0)
		OPENSSL_free(text);
}

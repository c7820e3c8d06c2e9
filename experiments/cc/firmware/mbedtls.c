/* A TLS client and a TLS server that talk to each other in memory, and self-tests of what they use. */

#include <stdio.h>
#include <string.h>

#include "mbedtls/aes.h"
#include "mbedtls/bignum.h"
#include "mbedtls/ccm.h"
#include "mbedtls/ecp.h"
#include "mbedtls/gcm.h"
#include "mbedtls/sha256.h"
#include "mbedtls/ssl.h"

enum { ROOM = 8192 };

struct pipe {
    unsigned char bytes[ROOM];
    size_t begin, end;
};

struct side {
    struct pipe *in, *out;
    mbedtls_ssl_context ssl;
    mbedtls_ssl_config config;
};

static struct pipe to_server, to_client;
static struct side client = {&to_client, &to_server}, server = {&to_server, &to_client};
static unsigned state = 77;

static int random_bytes(void *context, unsigned char *to, size_t n) {
    (void)context;
    for (size_t i = 0; i < n; i++) {
        state = state * 1103515245u + 12345u;
        to[i] = (unsigned char)(state >> 16);
    }
    return 0;
}

static int sent(void *context, const unsigned char *from, size_t n) {
    struct pipe *pipe = ((struct side *)context)->out;
    if (pipe->begin == pipe->end) pipe->begin = pipe->end = 0;
    if (n > ROOM - pipe->end) n = ROOM - pipe->end;
    if (!n) return MBEDTLS_ERR_SSL_WANT_WRITE;
    memcpy(pipe->bytes + pipe->end, from, n);
    pipe->end += n;
    return (int)n;
}

static int received(void *context, unsigned char *to, size_t n) {
    struct pipe *pipe = ((struct side *)context)->in;
    if (n > pipe->end - pipe->begin) n = pipe->end - pipe->begin;
    if (!n) return MBEDTLS_ERR_SSL_WANT_READ;
    memcpy(to, pipe->bytes + pipe->begin, n);
    pipe->begin += n;
    return (int)n;
}

static int set_up(struct side *side, int endpoint) {
    static const unsigned char key[16] = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 121, 98, 219};
    mbedtls_ssl_init(&side->ssl);
    mbedtls_ssl_config_init(&side->config);
    int code = mbedtls_ssl_config_defaults(&side->config, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM,
                                           MBEDTLS_SSL_PRESET_DEFAULT);
    mbedtls_ssl_conf_rng(&side->config, random_bytes, NULL);
    if (!code) code = mbedtls_ssl_conf_psk(&side->config, key, sizeof key, (const unsigned char *)"board", 5);
    if (!code) code = mbedtls_ssl_setup(&side->ssl, &side->config);
    mbedtls_ssl_set_bio(&side->ssl, side, sent, received, NULL);
    return code;
}

static int over(struct side *side) {
    int code = mbedtls_ssl_handshake(&side->ssl);
    return code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE ? 1 : code;
}

int main(void) {
    unsigned char message[400], got[400];
    int failed = mbedtls_aes_self_test(1) | mbedtls_sha256_self_test(1) | mbedtls_gcm_self_test(1) |
                 mbedtls_ccm_self_test(1) | mbedtls_mpi_self_test(1) | mbedtls_ecp_self_test(1);
    if (failed || set_up(&client, MBEDTLS_SSL_IS_CLIENT) || set_up(&server, MBEDTLS_SSL_IS_SERVER)) {
        printf("set up: %d\n", failed);
        return 1;
    }
    for (int turn = 0, left = 3; left; turn++) {
        int first = left & 1 ? over(&client) : 0, second = left & 2 ? over(&server) : 0;
        if (first < 0 || second < 0 || turn > 100) {
            printf("handshake: %d %d\n", first, second);
            return 1;
        }
        left = (first ? 1 : 0) | (second ? 2 : 0);
    }
    printf("%s\n", mbedtls_ssl_get_ciphersuite(&client.ssl));
    random_bytes(NULL, message, sizeof message);
    if (mbedtls_ssl_write(&client.ssl, message, sizeof message) != sizeof message) return 1;
    if (mbedtls_ssl_read(&server.ssl, got, sizeof got) != sizeof got || memcmp(message, got, sizeof got)) return 1;
    mbedtls_ssl_close_notify(&client.ssl);
    printf("closed: %d\n", mbedtls_ssl_read(&server.ssl, got, sizeof got) == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY);
    return 0;
}

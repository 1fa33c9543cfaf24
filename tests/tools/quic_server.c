/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quic_server: a QUIC server that puts its server id into its connection ids (QUIC-LB), for the
 * end-to-end tests. The protocol is ngtcp2's, TLS is GnuTLS's; the connection ids are made here, by
 * the draft's single pass: server id and nonce are one AES block.
 *
 *     quic_server NAME ADDRESS PORT CERTIFICATE KEY-FILE CONFIG-ID SERVER-ID AES-KEY
 *
 * SERVER-ID has two bytes, in hexadecimal digits. It answers every request of HTTP/3 with 200 and
 * its name, and tells a line each on standard output: `accepted PORT`, `moved PORT` when a
 * connection's packets come from another port than before, `answered PORT`, and `unknown PORT` for
 * a packet of a connection that it does not have: one that was led to the wrong server.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <nettle/aes.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#define CID_SIZE    (1 + AES_BLOCK_SIZE)
#define CONNECTIONS 64
#define CIDS        16 /* of a connection; the oldest are forgotten */
#define PACKET_MAX  1400
#define PRIORITY                                                                                   \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM:+CHACHA20-POLY1305:"                   \
    "%DISABLE_TLS13_COMPAT_MODE"

struct connection {
    ngtcp2_conn *quic; /* NULL: free */
    gnutls_session_t tls;
    ngtcp2_crypto_conn_ref reference;
    uint8_t cid[CIDS][CID_SIZE];
    uint32_t cids;
    uint16_t port;  /* of the client, as its last packet had it */
    int64_t stream; /* that waits for an answer; -1: none */
    uint32_t sent;  /* bytes of it */
    bool closed;
};

static struct {
    const char *name;
    int socket;
    struct sockaddr_in local;
    uint8_t config_id, server_id[2];
    struct aes128_ctx key;
    gnutls_certificate_credentials_t credentials;
    uint8_t answer[128]; /* HTTP/3: a HEADERS frame with :status 200, a DATA frame with the name */
    uint32_t answer_size;
    struct connection connection[CONNECTIONS];
} server;

static void die(const char *what)
{
    fprintf(stderr, "quic_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static ngtcp2_tstamp now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (ngtcp2_tstamp)time.tv_sec * NGTCP2_SECONDS + (ngtcp2_tstamp)time.tv_nsec;
}

static void fill_random(uint8_t *bytes, size_t size)
{
    if (getrandom(bytes, size, 0) != (ssize_t)size)
        die("no random numbers");
}

static void give_random(uint8_t *bytes, size_t size, const ngtcp2_rand_ctx *context)
{
    (void)context;
    fill_random(bytes, size);
}

/* A connection id that names this server, kept so that packets to it are known. */
static void make_cid(struct connection *connection, ngtcp2_cid *cid)
{
    uint8_t plain[AES_BLOCK_SIZE];

    fill_random(plain, sizeof(plain));
    memcpy(plain, server.server_id, sizeof(server.server_id));
    cid->datalen = CID_SIZE;
    cid->data[0] = (uint8_t)(server.config_id << 5 | (CID_SIZE - 1));
    aes128_encrypt(&server.key, sizeof(plain), cid->data + 1, plain);
    memcpy(connection->cid[connection->cids++ % CIDS], cid->data, CID_SIZE);
}

static int on_new_cid(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t size,
                      void *context)
{
    (void)quic;
    (void)size;
    make_cid(context, cid);
    fill_random(token, NGTCP2_STATELESS_RESET_TOKENLEN);
    return 0;
}

/* Streams that the client opens in both directions are requests; what they ask for does not matter.
 */
static int on_stream_data(ngtcp2_conn *quic, uint32_t flags, int64_t stream, uint64_t offset,
                          const uint8_t *data, size_t size, void *context, void *of_stream)
{
    struct connection *connection = context;

    (void)offset;
    (void)data;
    (void)of_stream;
    ngtcp2_conn_extend_max_stream_offset(quic, stream, size);
    ngtcp2_conn_extend_max_offset(quic, size);
    if (stream % 4 == 0 && (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0) {
        connection->stream = stream;
        connection->sent = 0;
    }
    return 0;
}

static ngtcp2_conn *connection_of(ngtcp2_crypto_conn_ref *reference)
{
    return ((struct connection *)reference->user_data)->quic;
}

static void open_tls(struct connection *connection)
{
    const gnutls_datum_t protocol = {(uint8_t *)(uintptr_t) "h3", 2};

    gnutls_init(&connection->tls,
                GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET | GNUTLS_NO_END_OF_EARLY_DATA);
    gnutls_priority_set_direct(connection->tls, PRIORITY, NULL);
    ngtcp2_crypto_gnutls_configure_server_session(connection->tls);
    connection->reference = (ngtcp2_crypto_conn_ref){connection_of, connection};
    gnutls_session_set_ptr(connection->tls, &connection->reference);
    gnutls_credentials_set(connection->tls, GNUTLS_CRD_CERTIFICATE, server.credentials);
    gnutls_alpn_set_protocols(connection->tls, &protocol, 1, 0);
}

static ngtcp2_path path_of(struct sockaddr_in *remote)
{
    return (ngtcp2_path){
        .local = {(ngtcp2_sockaddr *)&server.local, sizeof(server.local)},
        .remote = {(ngtcp2_sockaddr *)remote, sizeof(*remote)},
    };
}

static const ngtcp2_callbacks callbacks = {
    .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb,
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
    .encrypt = ngtcp2_crypto_encrypt_cb,
    .decrypt = ngtcp2_crypto_decrypt_cb,
    .hp_mask = ngtcp2_crypto_hp_mask_cb,
    .recv_stream_data = on_stream_data,
    .rand = give_random,
    .get_new_connection_id = on_new_cid,
    .update_key = ngtcp2_crypto_update_key_cb,
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
    .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
};

/* A connection for a client's first packet, or NULL. */
static struct connection *accept_connection(const uint8_t *packet, size_t size,
                                            struct sockaddr_in *remote)
{
    struct connection *connection = server.connection;
    ngtcp2_path path = path_of(remote);
    ngtcp2_transport_params params;
    ngtcp2_settings settings;
    ngtcp2_pkt_hd header;
    ngtcp2_cid cid;

    if (ngtcp2_accept(&header, packet, size) != 0)
        return NULL;
    while (connection < server.connection + CONNECTIONS && connection->quic != NULL)
        connection++;
    if (connection == server.connection + CONNECTIONS)
        return NULL;
    memset(connection, 0, sizeof(*connection));
    connection->stream = -1;
    connection->port = ntohs(remote->sin_port);
    make_cid(connection, &cid);
    ngtcp2_settings_default(&settings);
    settings.initial_ts = now();
    ngtcp2_transport_params_default(&params);
    params.original_dcid = header.dcid;
    params.initial_max_streams_bidi = 16;
    params.initial_max_streams_uni = 16;
    params.initial_max_data = 1 << 20;
    params.initial_max_stream_data_bidi_remote = 1 << 16;
    params.initial_max_stream_data_uni = 1 << 16;
    params.max_idle_timeout = 30 * NGTCP2_SECONDS;
    params.active_connection_id_limit = 7;
    if (ngtcp2_conn_server_new(&connection->quic, &header.scid, &cid, &path, header.version,
                               &callbacks, &settings, &params, NULL, connection) != 0)
        return NULL;
    open_tls(connection);
    ngtcp2_conn_set_tls_native_handle(connection->quic, connection->tls);
    printf("accepted %u\n", connection->port);
    return connection;
}

static void close_connection(struct connection *connection)
{
    ngtcp2_conn_del(connection->quic);
    gnutls_deinit(connection->tls);
    connection->quic = NULL;
}

/* Sends whatever the connection has to send: acknowledgements, the handshake, the answer. */
static void write_packets(struct connection *connection)
{
    uint8_t packet[PACKET_MAX];

    for (;;) {
        struct sockaddr_in local, remote;
        ngtcp2_path path = {{(ngtcp2_sockaddr *)&local, sizeof(local)},
                            {(ngtcp2_sockaddr *)&remote, sizeof(remote)},
                            NULL};
        ngtcp2_vec rest = {server.answer + connection->sent, server.answer_size - connection->sent};
        bool answers = connection->stream >= 0;
        ngtcp2_ssize taken = 0, size;
        ngtcp2_pkt_info info;

        size = ngtcp2_conn_writev_stream(connection->quic, &path, &info, packet, sizeof(packet),
                                         &taken, answers ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0,
                                         answers ? connection->stream : -1, &rest, answers ? 1 : 0,
                                         now());
        if (size < 0 && size != NGTCP2_ERR_STREAM_DATA_BLOCKED)
            connection->closed = true;
        if (size <= 0)
            return;
        if (answers && taken > 0)
            connection->sent += (uint32_t)taken;
        if (answers && connection->sent == server.answer_size) {
            connection->stream = -1;
            printf("answered %u\n", ntohs(remote.sin_port));
        }
        if (sendto(server.socket, packet, (size_t)size, 0, (struct sockaddr *)&remote,
                   sizeof(remote)) < 0 &&
            errno != EAGAIN)
            perror("quic_server: sendto");
    }
}

static struct connection *find_connection(const uint8_t *cid, size_t size)
{
    for (struct connection *c = server.connection; c < server.connection + CONNECTIONS; c++) {
        for (uint32_t i = 0; c->quic != NULL && i < CIDS && i < c->cids; i++)
            if (size == CID_SIZE && memcmp(c->cid[i], cid, CID_SIZE) == 0)
                return c;
    }
    return NULL;
}

/* Packets of a client's first flight carry an id of its own: they are told by its port. */
static struct connection *find_by_port(uint16_t port)
{
    for (struct connection *c = server.connection; c < server.connection + CONNECTIONS; c++)
        if (c->quic != NULL && c->port == port && !ngtcp2_conn_get_handshake_completed(c->quic))
            return c;
    return NULL;
}

static void read_packet(const uint8_t *packet, size_t size, struct sockaddr_in *remote)
{
    ngtcp2_path path = path_of(remote);
    uint16_t port = ntohs(remote->sin_port);
    struct connection *connection;
    ngtcp2_pkt_info info = {0};
    ngtcp2_version_cid head;

    if (ngtcp2_pkt_decode_version_cid(&head, packet, size, CID_SIZE) != 0)
        return;
    connection = find_connection(head.dcid, head.dcidlen);
    if (connection == NULL && (packet[0] & 0x80) != 0)
        connection = find_by_port(port);
    if (connection == NULL && (packet[0] & 0x80) != 0)
        connection = accept_connection(packet, size, remote);
    if (connection == NULL) {
        printf("unknown %u\n", port);
        return;
    }
    if (connection->port != port)
        printf("moved %u\n", port);
    connection->port = port;
    if (ngtcp2_conn_read_pkt(connection->quic, &path, &info, packet, size, now()) != 0)
        connection->closed = true;
}

static int timeout_ms(void)
{
    ngtcp2_tstamp first = UINT64_MAX, time = now();

    for (struct connection *c = server.connection; c < server.connection + CONNECTIONS; c++)
        if (c->quic != NULL && ngtcp2_conn_get_expiry(c->quic) < first)
            first = ngtcp2_conn_get_expiry(c->quic);
    if (first == UINT64_MAX)
        return -1;
    return first <= time ? 0 : (int)((first - time) / NGTCP2_MILLISECONDS + 1);
}

static void step_connections(void)
{
    for (struct connection *c = server.connection; c < server.connection + CONNECTIONS; c++) {
        if (c->quic == NULL)
            continue;
        if (!c->closed && ngtcp2_conn_get_expiry(c->quic) <= now() &&
            ngtcp2_conn_handle_expiry(c->quic, now()) != 0)
            c->closed = true;
        if (!c->closed)
            write_packets(c);
        if (c->closed)
            close_connection(c);
    }
}

static void serve(void)
{
    for (;;) {
        struct pollfd ready = {.fd = server.socket, .events = POLLIN};
        struct sockaddr_in remote;
        socklen_t length = sizeof(remote);
        uint8_t packet[65536];
        ssize_t size;

        poll(&ready, 1, timeout_ms());
        while ((size = recvfrom(server.socket, packet, sizeof(packet), MSG_DONTWAIT,
                                (struct sockaddr *)&remote, &length)) > 0)
            read_packet(packet, (size_t)size, &remote);
        step_connections();
    }
}

static void read_hex(const char *text, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
            die("a value is not of hexadecimal digits");
}

static void make_answer(void)
{
    size_t name = strlen(server.name);
    const uint8_t head[] = {0x01, 3, 0x00, 0x00, 0xd9, 0x00, (uint8_t)(name + 1)};

    memcpy(server.answer, head, sizeof(head));
    memcpy(server.answer + sizeof(head), server.name, name);
    server.answer[sizeof(head) + name] = '\n';
    server.answer_size = (uint32_t)(sizeof(head) + name + 1);
}

int main(int count, char **arguments)
{
    uint8_t key[16];

    if (count != 9) {
        fprintf(stderr, "usage: quic_server NAME ADDRESS PORT CERTIFICATE KEY-FILE CONFIG-ID "
                        "SERVER-ID AES-KEY\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    server.name = arguments[1];
    server.config_id = (uint8_t)atoi(arguments[6]);
    read_hex(arguments[7], server.server_id, sizeof(server.server_id));
    read_hex(arguments[8], key, sizeof(key));
    aes128_set_encrypt_key(&server.key, key);
    make_answer();
    server.local = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)atoi(arguments[3]))};
    inet_pton(AF_INET, arguments[2], &server.local.sin_addr);
    server.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (server.socket < 0 ||
        bind(server.socket, (struct sockaddr *)&server.local, sizeof(server.local)) != 0)
        die("cannot bind its socket");
    gnutls_certificate_allocate_credentials(&server.credentials);
    if (gnutls_certificate_set_x509_key_file(server.credentials, arguments[4], arguments[5],
                                             GNUTLS_X509_FMT_PEM) < 0)
        die("cannot read certificate and key");
    printf("ready\n");
    serve();
}

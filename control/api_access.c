/* SPDX-License-Identifier: BSD-3-Clause */
#include "api_access.h"

#include <event2/bufferevent.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int descriptor_of(struct evhttp_request *http)
{
    struct evhttp_connection *connection = evhttp_request_get_connection(http);

    return connection ? bufferevent_getfd(evhttp_connection_get_bufferevent(connection)) : -1;
}

struct hb_actor hb_api_actor(struct evhttp_request *http)
{
    struct ucred peer = {0};
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    int fd = descriptor_of(http);

    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 || address.ss_family != AF_UNIX)
        return (struct hb_actor){.by = HB_ACTOR_TCP};
    size = sizeof(peer);
    /* Who cannot be known may as little as possible. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return (struct hb_actor){.by = HB_ACTOR_TCP};
    return (struct hb_actor){.by = HB_ACTOR_UNIX, .uid = peer.uid, .pid = peer.pid};
}

/* Whether the peer is a member of the group, as of when it connected. */
static bool is_member(int fd, gid_t group)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    gid_t *groups;
    bool found;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    if (peer.gid == group)
        return true;
    size = 65536 * sizeof(*groups); /* as many as the kernel permits (NGROUPS_MAX) */
    groups = malloc(size);
    found = false;
    if (groups != NULL && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0) {
        for (size_t g = 0; g < size / sizeof(*groups); g++)
            found |= groups[g] == group;
    }
    free(groups);
    return found;
}

/* A name that leads here from elsewhere (DNS rebinding) is not one of these. */
static bool is_own_name(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

    for (size_t n = 0; host != NULL && n < sizeof(names) / sizeof(*names); n++) {
        size_t size = strlen(names[n]);

        if (strncmp(host, names[n], size) == 0 && (host[size] == ':' || host[size] == '\0'))
            return true;
    }
    return host != NULL && strncmp(host, "127.", 4) == 0 && host[strspn(host, "0123456789.:")] == 0;
}

static const char *forbids_tcp(struct evhttp_request *http, bool change,
                               const struct hb_api_config *config)
{
    struct evkeyvalq *headers = evhttp_request_get_input_headers(http);

    if (!is_own_name(evhttp_find_header(headers, "Host")))
        return "over TCP the API answers only to 127.0.0.1, [::1] and localhost; use one of these "
               "names";
    if (change && !config->listen_may_change)
        return "over TCP nothing can be changed; use the Unix socket, or set api.listen_may_change "
               "to true in the configuration";
    if (change && evhttp_find_header(headers, "Origin") != NULL)
        return "a page in a browser may change nothing; use halbachctl";
    return NULL;
}

const char *hb_api_forbids(struct evhttp_request *http, const struct hb_actor *actor, bool change,
                           const struct hb_api_config *config, gid_t group)
{
    if (actor->by == HB_ACTOR_TCP)
        return forbids_tcp(http, change, config);
    if (!change || actor->uid == 0 || actor->uid == geteuid() ||
        is_member(descriptor_of(http), group))
        return NULL;
    return "your user may read, but change nothing; become root or a member of the socket's group";
}

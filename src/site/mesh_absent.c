/* A build without libzmq: nothing opens, so that nothing else is ever called with a mesh. */
#include "site/mesh.h"

#include "ct_config.h"

#if !CT_WITH_ZMQ

ct_status ct_mesh_open(const ct_mesh_options *options, ct_mesh **out) {
    (void)options, (void)out;
    return ct_fail(CT_NOTBUILT, "this build has no messages between sites: install libzmq "
                                "(libzmq3-dev) and build again with -DCT_WITH_ZMQ=ON");
}

void ct_mesh_close(ct_mesh **mesh) {
    (void)mesh;
}

int ct_mesh_port(const ct_mesh *mesh) {
    (void)mesh;
    return 0;
}

ct_status ct_mesh_send(ct_mesh *mesh, int peer, const ct_letter *letter) {
    (void)mesh, (void)peer, (void)letter;
    return CT_NOTBUILT;
}

bool ct_mesh_peek(ct_mesh *mesh, int peer, ct_letter *out) {
    (void)mesh, (void)peer, (void)out;
    return false;
}

void ct_mesh_drop(ct_mesh *mesh, int peer) {
    (void)mesh, (void)peer;
}

void ct_mesh_refuse(ct_mesh *mesh, int peer, const char *reason) {
    (void)mesh, (void)peer, (void)reason;
}

bool ct_mesh_next_event(ct_mesh *mesh, ct_mesh_event *out) {
    (void)mesh, (void)out;
    return false;
}

bool ct_mesh_is_up(ct_mesh *mesh, int peer) {
    (void)mesh, (void)peer;
    return false;
}

void ct_mesh_wait(ct_mesh *mesh, double seconds) {
    (void)mesh, (void)seconds;
}

void ct_mesh_wake(ct_mesh *mesh) {
    (void)mesh;
}

ct_status ct_mesh_set_status(ct_mesh *mesh, const void *bytes, size_t n) {
    (void)mesh, (void)bytes, (void)n;
    return CT_NOTBUILT;
}

void ct_mesh_status_of(ct_mesh *mesh, int peer, void *bytes, size_t *n) {
    (void)mesh, (void)peer, (void)bytes;
    *n = 0;
}

uint64_t ct_mesh_status_number(ct_mesh *mesh, int peer) {
    (void)mesh, (void)peer;
    return 0;
}

void ct_mesh_limit(ct_mesh *mesh, size_t bytes) {
    (void)mesh, (void)bytes;
}

ct_mesh_traffic ct_mesh_traffic_of(ct_mesh *mesh, int peer) {
    (void)mesh, (void)peer;
    return (ct_mesh_traffic){0};
}
#endif

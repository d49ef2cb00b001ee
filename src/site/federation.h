/* The file that all sites of a federation hold: who they are, who talks to whom, and what is trained.
 * One thing a line, words with blanks between them; # begins a comment at the start of a line:
 *
 *     federation lungs
 *     site north 5f6c...d2 north.example.org:4711     name, public key, where it can be reached
 *     site south 09ab...77                            nowhere: it dials its neighbours
 *     site east  c4e1...08 east.example.org:4711
 *     edge north south                                or all edges at once: graph ring
 *     edge north east
 *     option dataset folder                           of crosstalk train, the same for all sites
 *     option algorithm ccl
 *     heartbeat 2                                     seconds; a site silent for three is gone
 *
 * Sites that meet compare its hash, which comments and blanks do not change. */
#ifndef CT_SITE_FEDERATION_H
#define CT_SITE_FEDERATION_H

#include "schema/config.h"
#include "site/mesh.h"
#include "topology/topology.h"

#define CT_MAX_SITES 1024

typedef struct ct_federation_site {
    char name[CT_MESH_NAME];
    uint8_t key[CT_KEY_BYTES];
    char address[CT_MESH_ADDRESS]; /* host:port; "": nobody can dial it */
} ct_federation_site;

typedef struct ct_federation {
    char name[CT_MESH_NAME];
    ct_federation_site *sites; /* [n_sites]; site i is agent i */
    int n_sites;
    int (*edges)[2]; /* [n_edges]; of a named graph, that graph's */
    int n_edges;
    ct_topology graph;
    char graph_name[64]; /* as --topology takes it; "": the edges are named one by one */
    ct_config options;   /* what the file says; everything else has its default */
    double heartbeat_s;
    uint8_t hash[32];
} ct_federation;

/* CT_INVAL with file and line: what is wrong. */
ct_status ct_federation_read(const char *path, ct_federation *out);
void ct_federation_free(ct_federation *federation);

/* The beginning of its hash, as people compare it. */
#define CT_FINGERPRINT 17
void ct_federation_fingerprint(const ct_federation *federation, char out[CT_FINGERPRINT]);

/* -1: no such site. */
int ct_federation_find(const ct_federation *federation, const char *name);
int ct_federation_find_key(const ct_federation *federation, const uint8_t key[CT_KEY_BYTES]);
/* Of two neighbours, the one that dials: who has no address; where both have one, the first. */
bool ct_federation_dials(const ct_federation *federation, int from, int to);
/* A site's neighbours as peers of its mesh: [degree], in the order of graph.neighbour. ct_free() it. */
ct_status ct_federation_peers(const ct_federation *federation, int site, ct_mesh_peer **out,
                              int *n);

#endif

#include "algo/speed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/file.h"
#include "util/memory.h"
#include "util/rng.h"
#include "util/text.h"

#define MOST_SPEED 1e6
#define MOST_WIDTH 5          /* of a logarithm: e^5 is 148 */
#define OF_AGENT   UINT32_MAX /* index of the draw of an agent's speed; others are steps' */

static ct_status bad(const char *word) {
    return ct_refuse("speed",
                     "'%s' is not one:S, uniform:LO:HI, lognormal:D, file:PATH or jitter:J, with "
                     "speeds above 0 up to %g and D and J up to %d",
                     word, MOST_SPEED, MOST_WIDTH);
}

static bool is_speed(double value) {
    return value > 0 && value <= MOST_SPEED;
}

static void open_stream(ct_rng *rng, const ct_speeds *s, int row, uint32_t step, uint32_t index) {
    ct_rng_init(rng, s->seeds[row / s->n_agents], CT_RNG_SPEED, (uint32_t)(row % s->n_agents), step,
                index);
}

/* One number a line, in the order of the agents; the same in every seed's world. */
static ct_status read_file(const char *path, ct_speeds *s, int n_rows) {
    CT_SCOPED(ct_blob) file = {0};
    char *save = NULL;
    int n = 0;
    CT_TRY(ct_file_read(path, 1 << 20, &file));
    for (char *word = strtok_r((char *)file.bytes, " ,\t\r\n", &save); word != NULL;
         word = strtok_r(NULL, " ,\t\r\n", &save), n++) {
        double value = 0;
        if (!ct_parse_double(word, &value) || !is_speed(value))
            return ct_fail(CT_INVAL, "%s: '%.40s' is not a speed above 0 up to %g", path, word,
                           MOST_SPEED);
        for (int row = n; n < s->n_agents && row < n_rows; row += s->n_agents)
            s->speed[row] = value;
    }
    if (n == s->n_agents) return CT_OK;
    return ct_fail(CT_INVAL, "%s has %d speeds for %d agents", path, n, s->n_agents);
}

typedef struct reading {
    ct_speeds *speeds;
    int n_rows;
} reading;

/* low + (high - low) u, or exp(width z) */
static void draw(const reading *r, double low, double high, double width) {
    for (int row = 0; row < r->n_rows; row++) {
        ct_rng rng;
        open_stream(&rng, r->speeds, row, 0, OF_AGENT);
        r->speeds->speed[row] = width > 0 ? exp(width * ct_rng_normal(&rng))
                                          : low + (high - low) * ct_rng_uniform(&rng);
    }
}

static ct_status take_word(void *context, const char *word) {
    const reading *r = context;
    ct_speeds *s = r->speeds;
    char text[512];
    double a = 0, b = 0;
    snprintf(text, sizeof text, "%s", word);
    char *value = strchr(text, ':');
    if (value == NULL || strlen(word) >= sizeof text) return bad(word);
    *value++ = '\0';
    if (strcmp(text, "file") == 0) return read_file(value, s, r->n_rows);
    char *second = strchr(value, ':');
    if (second != NULL) *second++ = '\0';
    bool has_two = second != NULL && ct_parse_double(second, &b);
    if (!ct_parse_double(value, &a) || (second != NULL) != (strcmp(text, "uniform") == 0) ||
        (second != NULL && !has_two))
        return bad(word);
    bool is_width = a > 0 && a <= MOST_WIDTH;
    if (strcmp(text, "one") == 0 && is_speed(a))
        for (int row = 0; row < r->n_rows; row += s->n_agents) s->speed[row] = a;
    else if (strcmp(text, "uniform") == 0 && is_speed(a) && is_speed(b) && a <= b)
        draw(r, a, b, 0);
    else if (strcmp(text, "lognormal") == 0 && is_width)
        draw(r, 0, 0, a);
    else if (strcmp(text, "jitter") == 0 && is_width)
        s->jitter = a;
    else
        return bad(word);
    return CT_OK;
}

ct_status ct_speeds_parse(const char *text, const uint64_t *seeds, int n_seeds, int n_agents,
                          ct_speeds *out) {
    reading r = {.speeds = out, .n_rows = n_seeds * n_agents};
    *out = (ct_speeds){.seeds = seeds, .n_agents = n_agents};
    CT_TRY(ct_make(&out->speed, (size_t)r.n_rows, "the agents' speeds"));
    for (int row = 0; row < r.n_rows; row++) out->speed[row] = 1;
    return text[0] == '\0' ? CT_OK : ct_split(text, take_word, &r);
}

void ct_speeds_free(ct_speeds *speeds) {
    ct_free(speeds->speed);
    memset(speeds, 0, sizeof *speeds);
}

double ct_speeds_step_s(const ct_speeds *s, int row, long step) {
    if (!(s->jitter > 0)) return 1 / s->speed[row];
    ct_rng rng;
    open_stream(&rng, s, row, (uint32_t)step, 0);
    return exp(s->jitter * ct_rng_normal(&rng) - s->jitter * s->jitter / 2) / s->speed[row];
}

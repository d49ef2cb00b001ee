#include "schema/interval.h"

#include <stdio.h>
#include <string.h>

#include "util/text.h"

ct_status ct_interval_parse(const char *text, ct_interval *out) {
    static const char units[] = "smh";
    static const double seconds[] = {1, 60, 3600};
    char head[32];
    double value = 0;
    int64_t epochs = 0;
    size_t n = strlen(text);
    *out = (ct_interval){.is_off = strcmp(text, "0") == 0};
    if (out->is_off || strcmp(text, "end") == 0) return CT_OK;
    if (ct_parse_i64(text, &epochs) && epochs > 0) {
        out->epochs = (long)epochs;
        return CT_OK;
    }
    const char *unit = n > 1 ? strchr(units, text[n - 1]) : NULL;
    snprintf(head, sizeof head, "%.*s", (int)(n > 0 ? n - 1 : 0), text);
    if (unit == NULL || n >= sizeof head || !ct_parse_double(head, &value) || !(value > 0))
        return ct_refuse("checkpoint-every",
                         "'%s' is neither a number of epochs (5) nor a time "
                         "(90s, 10m, 2h), nor end or 0",
                         text);
    out->every_s = value * seconds[unit - units];
    return CT_OK;
}

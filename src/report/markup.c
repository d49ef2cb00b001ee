#include "report/markup.h"

#include <math.h>
#include <string.h>

#include "util/json.h"

/* Bytes of the UTF-8 character at `c`; 0 if there is none. */
static size_t utf8_length(const unsigned char *c) {
    size_t n = c[0] < 0x80 ? 1 : c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : 4;
    if (c[0] > 0xF4) return 0;
    for (size_t k = 1; k < n; k++)
        if ((c[k] & 0xC0) != 0x80) return 0;
    bool is_overlong = (c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xF0 && c[1] < 0x90);
    bool is_outside = (c[0] == 0xED && c[1] > 0x9F) || (c[0] == 0xF4 && c[1] > 0x8F);
    bool is_no_character = c[0] == 0xEF && c[1] == 0xBF && c[2] >= 0xBE; /* U+FFFE, U+FFFF */
    return is_overlong || is_outside || is_no_character ? 0 : n;
}

static const char *entity_of(char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

/* Characters from here on that are themselves. */
static size_t plain_length(const char *text) {
    size_t n = 0;
    while ((text[n] >= 0x20 && text[n] < 0x7F && entity_of(text[n]) == NULL) || text[n] == '\n' ||
           text[n] == '\t')
        n++;
    return n;
}

void ct_markup_text(ct_text *out, const char *text) {
    while (*text != '\0') {
        size_t n_plain = plain_length(text);
        if (n_plain > 0) ct_text_add(out, "%.*s", (int)n_plain, text);
        text += n_plain;
        if (*text == '\0') return;
        size_t n = utf8_length((const unsigned char *)text);
        const char *entity = entity_of(*text);
        bool is_control = (unsigned char)*text < 0x20 || *text == 0x7F;
        if (entity != NULL)
            ct_text_add(out, "%s", entity);
        else if (n == 0 || is_control)
            ct_text_add(out, "\xEF\xBF\xBD");
        else
            ct_text_add(out, "%.*s", (int)n, text);
        text += n == 0 ? 1 : n;
    }
}

void ct_markup_wrap(ct_text *out, const char *before, const char *text, const char *after) {
    ct_text_add(out, "%s", before);
    ct_markup_text(out, text);
    ct_text_add(out, "%s", after);
}

void ct_markup_number(ct_text *out, double value) {
    if (isfinite(value))
        ct_json_add_number(out, value);
    else
        ct_text_add(out, "nan");
}

double ct_markup_width(const char *text) {
    double width = 0;
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text & 0xC0) == 0x80) continue; /* inside a character */
        bool is_narrow = strchr("iljtfrI.,:;|!'()[] ", *text) != NULL;
        bool is_wide = strchr("mwMWGOQ@%", *text) != NULL;
        width += is_narrow ? 0.33 : is_wide ? 0.88 : 0.58;
    }
    return width;
}

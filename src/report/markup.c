#include "report/markup.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/json.h"

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
        size_t n = ct_utf8_length(text);
        const char *entity = entity_of(*text);
        bool is_control = (unsigned char)*text < 0x20 || *text == 0x7F;
        if (n == 3 && strncmp(text, "\xEF\xBF", 2) == 0 && (unsigned char)text[2] >= 0xBE)
            n = 0; /* U+FFFE and U+FFFF are no characters */
        if (entity != NULL)
            ct_text_add(out, "%s", entity);
        else if (n == 0 || is_control)
            ct_text_add(out, "\xEF\xBF\xBD");
        else
            ct_text_add(out, "%.*s", (int)n, text);
        text += n == 0 ? 1 : n;
    }
}

static void add_exact(ct_text *out, double value) {
    if (isfinite(value))
        ct_json_add_number(out, value);
    else
        ct_text_add(out, "nan");
}

/* The conversion at `format`, with its value; returns what follows it. */
static const char *add_value(ct_text *out, const char *format, va_list *args) {
    char one[16];
    size_t n = strcspn(format + 1, "%sduefg") + 2;
    snprintf(one, sizeof one, "%.*s", (int)n, format);
    bool is_long = strpbrk(one, "lz") != NULL; /* of 64 bits, all of them */
    switch (format[n - 1]) {
    case '%': ct_text_add(out, "%%"); break;
    case 's': ct_markup_text(out, va_arg(*args, const char *)); break;
    case 'e': add_exact(out, va_arg(*args, double)); break;
    case 'f':
    case 'g': ct_text_add(out, one, va_arg(*args, double)); break;
    default:
        if (is_long)
            ct_text_add(out, one, va_arg(*args, long));
        else
            ct_text_add(out, one, va_arg(*args, int));
    }
    return format + n;
}

void ct_markup_add(ct_text *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    while (*format != '\0') {
        size_t n = strcspn(format, "%'");
        ct_text_add(out, "%.*s", (int)n, format);
        format += n;
        if (*format == '\'') ct_text_add(out, "\"");
        if (*format == '%')
            format = add_value(out, format, &args);
        else if (*format != '\0')
            format++;
    }
    va_end(args);
}

double ct_markup_width(const char *text) {
    double width = 0;
    for (; *text != '\0'; text++) {
        if (((unsigned char)*text & 0xC0) == 0x80) continue; /* inside a character */
        bool is_narrow = strchr("iljtfrI.,:;|!'()[] -", *text) != NULL;
        bool is_wide = strchr("mwMWGOQ@%+=", *text) != NULL;
        bool is_capital = *text >= 'A' && *text <= 'Z';
        width += is_narrow ? 0.36 : is_wide ? 0.9 : is_capital ? 0.7 : 0.62;
    }
    return width;
}

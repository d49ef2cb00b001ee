/* Pages of help: one walk over a command's help and its options, in one of several styles. */
#ifndef CT_CLI_PAGES_H
#define CT_CLI_PAGES_H

#include "cli/cli.h"
#include "util/text.h"

#define CT_HELP_START "crosstalk train --dataset shapes --agents 4 --epochs 8"

typedef struct ct_page {
    ct_text text;
    int width; /* of the terminal */
} ct_page;

typedef struct ct_page_style {
    void (*title)(ct_page *page, const char *name, const char *text); /* "site keygen" */
    void (*usage)(ct_page *page, const char *lines);
    void (*heading)(ct_page *page, const char *text);
    void (*group)(ct_page *page, const char *text); /* options follow; "": of no group */
    void (*option)(ct_page *page, const ct_option *o);
    void (*paragraph)(ct_page *page, const char *text, size_t n);
    void (*verbatim)(ct_page *page, const char *text, size_t n);
    void (*item)(ct_page *page, const char *name, const char *text);
    void (*command)(ct_page *page, const char *name, const char *text); /* item with a page */
    void (*example)(ct_page *page, const char *text, const char *command);
    void (*also)(ct_page *page, const char *list);
} ct_page_style;

/* The page of a command or part. */
void ct_page_write(ct_page *page, const ct_page_style *style, const ct_command *command);
/* The page about all of them. */
void ct_page_write_overview(ct_page *page, const ct_page_style *style);

/* "site-keygen": the name of a command's page */
void ct_page_name(const ct_command *command, char *out, size_t size);
/* "N", "on|off", "[PATH]": what stands behind an option; "" behind a switch. And its help. */
void ct_page_value(const ct_option *o, char *out, size_t size);
void ct_page_option_help(const ct_option *o, char *out, size_t size);
/* "From 1 to 8." and the like, or "". */
void ct_page_range(const ct_option *o, char *out, size_t size);
bool ct_page_has_default(const ct_option *o);

#endif

/* What the linker left in the program, as built and as installed, and in libcrosstalk.so: no library
 * is looked for in the working directory, addresses are random, tables read-only, stacks not
 * executable, calls guarded. test_elf PROGRAM looks at another one. */
#include "test.h"

#include "util/file.h"

#include <link.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct image {
    ct_blob file;
    const ElfW(Ehdr) * head;
    const ElfW(Phdr) * segments;
    const ElfW(Dyn) * dynamic;
    const ElfW(Sym) * symbols;
    size_t n_symbols;
    const char *symbol_names, *dynamic_names;
} image;

static const char *program = CT_PROGRAM;

static const void *at(const image *m, uint64_t offset) {
    return m->file.bytes + offset;
}

static const ElfW(Phdr) * segment(const image *m, uint32_t type) {
    for (int k = 0; k < m->head->e_phnum; k++)
        if (m->segments[k].p_type == type) return &m->segments[k];
    return NULL;
}

/* The entry of the dynamic section with this tag that comes after `last`. */
static const ElfW(Dyn) * entry(const image *m, int64_t tag, const ElfW(Dyn) * last) {
    for (const ElfW(Dyn) *d = last == NULL ? m->dynamic : last + 1; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag) return d;
    return NULL;
}

static uint64_t value_of(const image *m, int64_t tag) {
    const ElfW(Dyn) *d = entry(m, tag, NULL);
    return d != NULL ? d->d_un.d_val : 0;
}

static void find_sections(image *m) {
    const ElfW(Shdr) *sections = at(m, m->head->e_shoff);
    for (int k = 0; k < m->head->e_shnum; k++) {
        const ElfW(Shdr) *s = &sections[k];
        if (s->sh_type == SHT_DYNAMIC) {
            m->dynamic = at(m, s->sh_offset);
            m->dynamic_names = at(m, sections[s->sh_link].sh_offset);
        } else if (s->sh_type == SHT_DYNSYM) {
            m->symbols = at(m, s->sh_offset);
            m->n_symbols = s->sh_size / sizeof *m->symbols;
            m->symbol_names = at(m, sections[s->sh_link].sh_offset);
        }
    }
}

static bool open_image(const char *path, image *m) {
    *m = (image){0};
    CHECK_OK(ct_file_read(path, (size_t)1 << 30, &m->file));
    if (m->file.n < sizeof *m->head || memcmp(m->file.bytes, ELFMAG, SELFMAG) != 0) return false;
    m->head = at(m, 0);
    m->segments = at(m, m->head->e_phoff);
    find_sections(m);
    return m->dynamic != NULL && m->symbols != NULL;
}

static bool imports(const image *m, const char *end) {
    for (size_t k = 0; k < m->n_symbols; k++) {
        const char *name = m->symbol_names + m->symbols[k].st_name;
        size_t n = strlen(name), n_end = strlen(end);
        if (n >= n_end && strcmp(name + n - n_end, end) == 0) return true;
    }
    return false;
}

/* ---- the claims ---- */

/* An empty element of the list, and one that is not absolute, is the working directory. */
static void check_library_path(const image *m, int64_t tag) {
    const ElfW(Dyn) *d = entry(m, tag, NULL);
    if (d == NULL) return;
    const char *path = m->dynamic_names + d->d_un.d_val;
    for (const char *c = path;; c++) {
        if (*c != '/') {
            printf("    libraries are looked for in '%s'\n", path);
            test_failed = true;
        }
        c = strchr(c, ':');
        if (c == NULL) return;
    }
}

static void check_segments(const image *m) {
    const ElfW(Phdr) *stack = segment(m, PT_GNU_STACK);
    CHECK(stack != NULL && (stack->p_flags & PF_X) == 0);
    CHECK(segment(m, PT_GNU_RELRO) != NULL);
    for (int k = 0; k < m->head->e_phnum; k++) {
        uint32_t flags = m->segments[k].p_flags;
        CHECK(m->segments[k].p_type != PT_LOAD || (flags & (PF_W | PF_X)) != (PF_W | PF_X));
    }
}

/* Of programs and libraries alike. */
static void check_image(const image *m) {
    check_library_path(m, DT_RPATH);
    check_library_path(m, DT_RUNPATH);
    check_segments(m);
    CHECK(m->head->e_type == ET_DYN);
    CHECK((value_of(m, DT_FLAGS_1) & DF_1_NOW) != 0 || (value_of(m, DT_FLAGS) & DF_BIND_NOW) != 0);
    CHECK(entry(m, DT_TEXTREL, NULL) == NULL);
    CHECK(imports(m, "__stack_chk_fail"));
#if defined(__OPTIMIZE__) && !CT_SANITIZED
    CHECK(imports(m, "printf_chk") && imports(m, "memcpy_chk"));
#endif
}

static void check_program(const char *path) {
    image m;
    REQUIRE(open_image(path, &m));
    check_image(&m);
    CHECK((value_of(&m, DT_FLAGS_1) & DF_1_PIE) != 0);
    ct_blob_free(&m.file);
}

static void the_built_program_is_hardened(void) {
    check_program(program);
}

static void the_shared_library_is_hardened(void) {
    image m;
    REQUIRE(open_image(CT_LIBRARY, &m));
    check_image(&m);
    CHECK(entry(&m, DT_SONAME, NULL) != NULL);
    CHECK(strcmp(m.dynamic_names + value_of(&m, DT_SONAME), "libcrosstalk.so.0") == 0);
    ct_blob_free(&m.file);
}

static void the_installed_program_is_hardened(void) {
    char prefix[] = "/tmp/crosstalk-elf-XXXXXX", command[1024], path[512];
    REQUIRE(mkdtemp(prefix) != NULL);
    snprintf(command, sizeof command, "'%s' --install '%s' --prefix %s >%s/log 2>&1", CT_CMAKE,
             CT_BINARY_DIR, prefix, prefix);
    CHECK(system(command) == 0); /* NOLINT: the test's own words */
    snprintf(path, sizeof path, "%s/bin/crosstalk", prefix);
    check_program(path);
    snprintf(command, sizeof command, "%s --version >/dev/null", path);
    CHECK(system(command) == 0);
    snprintf(command, sizeof command, "rm -r %s", prefix);
    CHECK(system(command) == 0);
}

/* Its status in a folder where every library's name is a file that is none. */
static int run_in(const char *folder) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        unsetenv("LD_LIBRARY_PATH");
        if (chdir(folder) != 0 || freopen("out", "w", stdout) == NULL) _exit(99);
        execl(program, program, "--version", (char *)NULL);
        _exit(98);
    }
    int status = -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_library_planted_in_the_working_directory_is_not_loaded(void) {
    char folder[] = "/tmp/crosstalk-elf-XXXXXX";
    image m;
    REQUIRE(open_image(program, &m));
    REQUIRE(mkdtemp(folder) != NULL);
    for (const ElfW(Dyn) *d = NULL; (d = entry(&m, DT_NEEDED, d)) != NULL;)
        CHECK_OK(ct_file_write(ct_path_in(folder, m.dynamic_names + d->d_un.d_val).text, "x", 1));
    CHECK(run_in(folder) == 0);
    for (const ElfW(Dyn) *d = NULL; (d = entry(&m, DT_NEEDED, d)) != NULL;)
        remove(ct_path_in(folder, m.dynamic_names + d->d_un.d_val).text);
    remove(ct_path_in(folder, "out").text);
    CHECK(rmdir(folder) == 0);
    ct_blob_free(&m.file);
}

/* What leaves no mark in the file: every source is compiled with it. */
static void every_source_is_compiled_with_the_guards(void) {
    static const char *const guards[] = {
        "-fstack-protector-strong",
#if defined(__x86_64__) && defined(__GNUC__)
        "-fstack-clash-protection",
        "-fcf-protection",
#endif
        "-fPI" /* C in the library, E in the program */
    };
    ct_blob file = {0};
    int n = 0;
    REQUIRE_OK(ct_file_read(CT_BINARY_DIR "/compile_commands.json", 1 << 26, &file));
    char *save = NULL;
    for (char *line = strtok_r((char *)file.bytes, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (strstr(line, "\"command\":") == NULL || strstr(line, "/src/") == NULL) continue;
        n++;
        for (size_t k = 0; k < sizeof guards / sizeof *guards; k++)
            if (strstr(line, guards[k]) == NULL) {
                printf("    without %s: %s\n", guards[k], line);
                test_failed = true;
            }
    }
    CHECK(n > 100);
    ct_blob_free(&file);
}

int main(int n_args, char **args) {
    if (n_args > 1) program = args[1];
    TEST(the_built_program_is_hardened);
    TEST(the_shared_library_is_hardened);
    TEST(the_installed_program_is_hardened);
    TEST(a_library_planted_in_the_working_directory_is_not_loaded);
    TEST(every_source_is_compiled_with_the_guards);
    return test_report();
}

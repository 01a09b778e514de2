// The terminal: messages, colours, a progress bar, Ctrl-C. The one place of the program that holds process-wide state.
#include "cli/console.h"
#include "base/env.h"
#include "ggml/ext.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int verbosity;
    FILE *log;
    bool quiet, err_tty, colours;
    bool bar_shown;
    int64_t bar_start_us, bar_last_us;
} state;

static volatile sig_atomic_t interrupts;

static volatile sig_atomic_t ended;  // SIGTERM or SIGHUP, once it came

static void on_interrupt(int sig) {
    if (interrupts++) _exit(128 + sig);
    if (sig != SIGINT) ended = sig;
}

// The library's own messages. Errors are left to console_library_error, so that one failure gives one sentence.
static void on_log(enum ggml_log_level level, const char *text, void *unused) {
    (void) unused;
    static const int needed[] = {[GGML_LOG_LEVEL_NONE] = 3, [GGML_LOG_LEVEL_DEBUG] = 4, [GGML_LOG_LEVEL_INFO] = 3,
                                 [GGML_LOG_LEVEL_WARN] = 2, [GGML_LOG_LEVEL_ERROR] = 3, [GGML_LOG_LEVEL_CONT] = 4};
    const int want = (unsigned) level < sizeof(needed) / sizeof(needed[0]) ? needed[level] : 4;
    if (state.verbosity >= want) fputs(text, stderr);
    if (state.log) fputs(text, state.log);
}

// A mapped file was cut by another program, or its disk failed, between the library's look at its size and the touch of a page.
// Nothing can be undone where that is noticed, in a kernel, perhaps in several threads at once: one sentence, and the end.
static void on_lost_page(int sig) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&told)) pause();
    static const char why[] = "error: a file that is in use was cut short by another program, or cannot be read\n";
    if (state.bar_shown && write(STDERR_FILENO, "\n", 1) < 0) _exit(128 + sig);
    _exit(write(STDERR_FILENO, why, sizeof(why) - 1) < 0 ? 128 + sig : 1);
}

static void catch_signal(int sig, void (*how)(int)) {
    struct sigaction sa = {.sa_handler = how};
    sigemptyset(&sa.sa_mask);
    sigaction(sig, &sa, NULL);
}

int console_init(const struct params *p) {
    const char *term = env_get("TERM");
    state.verbosity = p->verbose ? 5 : p->verbosity;
    state.log = p->log_file ? fopen(p->log_file, "w") : NULL;
    if (p->log_file && !state.log) return console_error("cannot write %s: %s", p->log_file, strerror(errno));
    state.quiet = p->quiet;
    state.err_tty = isatty(STDERR_FILENO);
    state.colours = isatty(STDOUT_FILENO) && !env_get("NO_COLOR") && term && strcmp(term, "dumb") != 0;
    llama_log_set(on_log, NULL);
    catch_signal(SIGINT, on_interrupt);
    catch_signal(SIGBUS, on_lost_page);
    signal(SIGXFSZ,
           SIG_IGN);  // a file over the limit (ulimit -f) is a failed write like any other, and its beginning is removed
    return 0;
}

void console_done(void) {
    console_progress_end();
    if (state.log) {
        llama_log_set(NULL, NULL);
        if (ferror(state.log) | (fclose(state.log) != 0)) fputs("warning: the log file is not whole\n", stderr);
        state.log = NULL;
    }
    if (!ended) return;
    fflush(stdout);
    signal(ended, SIG_DFL);
    raise(ended);
}

void console_finish_first(void) {
    struct sigaction now;
    catch_signal(SIGTERM, on_interrupt);
    const bool heard = sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN;  // else nohup's wish is kept
    if (heard) catch_signal(SIGHUP, on_interrupt);
}

static void message(const char *prefix, const char *fmt, va_list args) {
    console_progress_end();
    fputs(prefix, stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int console_error(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    message("error: ", fmt, args);
    va_end(args);
    return 1;
}

int console_library_error(void) {
    const char *why = ggml_last_error();
    if (!why[0]) return console_error("the library reported a failure without a reason");
    console_progress_end();
    fputs("error: ", stderr);
    console_escaped(stderr, why, strlen(why));  // it may quote a name from a file
    fputc('\n', stderr);
    return 1;
}

void console_note(const char *fmt, ...) {
    if (state.quiet) return;
    va_list args;
    va_start(args, fmt);
    message("", fmt, args);
    va_end(args);
}

bool console_colours(void) { return state.colours; }
bool console_interrupted(void) { return interrupts != 0; }
void console_rearm(void) { interrupts = 0; }

void console_progress(const char *what, float done) {
    if (!state.err_tty || state.quiet) return;
    const int64_t now = llama_time_us();
    if (!state.bar_start_us) state.bar_start_us = now;
    const bool due = now - state.bar_start_us > 700000 && now - state.bar_last_us > 100000;
    if (!due && !(state.bar_shown && done >= 1.0f)) return;
    state.bar_last_us = now;
    state.bar_shown = true;
    const int width = 40, full = (int) (done * (float) width);
    fprintf(stderr, "\r%s [", what);
    for (int i = 0; i < width; i++) fputc(i < full ? '#' : '.', stderr);
    fprintf(stderr, "] %3d %%", (int) (done * 100.0f));
    fflush(stderr);
}

void console_progress_end(void) {
    if (state.bar_shown) fputs("\r\x1b[K", stderr);
    state.bar_shown = false;
    state.bar_start_us = 0;
}

const char *console_bytes(char buf[32], double bytes) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    while (bytes >= 1024 && i < 4) {
        bytes /= 1024;
        i++;
    }
    snprintf(buf, 32, i ? "%.2f %s" : "%.0f %s", bytes, unit[i]);
    return buf;
}

// Length of the well-formed UTF-8 sequence at s, 0 if there is none.
static size_t utf8_length(const unsigned char *s, size_t n) {
    const size_t len = s[0] < 0x80                   ? 1
                       : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                       : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                       : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                     : 0;
    if (len == 0 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    const bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    const bool outside = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
    return overlong || outside ? 0 : len;
}

void console_escaped(FILE *out, const char *text, size_t n) {
    const unsigned char *s = (const unsigned char *) text;
    for (size_t i = 0; i < n;) {
        const size_t len = utf8_length(s + i, n - i);
        const bool control = len == 1 && (s[i] < 0x20 || s[i] == 0x7f);
        const bool c1 = len == 2 && s[i] == 0xc2 && s[i + 1] < 0xa0;
        if (s[i] == '\n')
            fputs("\\n", out);
        else if (s[i] == '\t')
            fputs("\\t", out);
        else if (s[i] == '\r')
            fputs("\\r", out);
        else if (s[i] == '\\')
            fputs("\\\\", out);
        else if (len == 0 || control)
            fprintf(out, "\\x%02x", s[i]);
        else if (c1)
            fprintf(out, "\\u00%02x", s[i + 1]);
        else
            fwrite(s + i, 1, len, out);
        i += len ? len : 1;
    }
}

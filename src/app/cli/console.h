// The terminal: messages, colours, a progress bar, Ctrl-C.
#pragma once

#include "cli/params.h"

// 0, or 1 after a sentence on stderr: the log file cannot be written.
int console_init(const struct params *p);
void console_done(void);

// "error: ..." on stderr, as one line; the text ends without a full stop or line end. Gives 1, the exit status.
int console_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
// The same with the library's last sentence.
int console_library_error(void);
void console_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool console_colours(void);  // standard output is a terminal that shows colours
// Ctrl-C since the last console_rearm(). The second Ctrl-C before that ends the program with status 130.
bool console_interrupted(void);
void console_rearm(void);
// From here on SIGTERM and SIGHUP count as Ctrl-C, so that what is unfinished on the disk is removed; console_done() then ends the program by
// that signal. Only for work that asks console_interrupted() all along.
void console_finish_first(void);

// Progress from 0 to 1 of work called `what`: a bar on stderr, if that is a terminal and the work takes over a second or so.
void console_progress(const char *what, float done);
void console_progress_end(void);

// Bytes as "97.1 MiB".
const char *console_bytes(char buf[32], double bytes);
// Writes text with control characters (and bytes that are not UTF-8) as escapes.
void console_escaped(FILE *out, const char *s, size_t n);

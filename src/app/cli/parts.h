// What session.c puts together: parts of a session that have a file of their own.
#pragma once

#include "cli/session.h"

// cvec.c: loads and adds up the vectors of --control-vector. 0, or the exit status after a sentence on stderr.
int control_vectors_apply(struct session *s, const struct params *p);
// threads.c: teams of threads for --cpu-mask, --cpu-range, --cpu-strict, --prio and --poll, if any of them was given. 0, or 2.
int threads_attach(struct session *s, const struct params *p);

// Logging through the process's log sink (ggml_log_set; by default stderr from WARN upwards).
#pragma once

#include "ggml/ext.h"

#define log_debug(...) ggml_log_write(GGML_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) ggml_log_write(GGML_LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) ggml_log_write(GGML_LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) ggml_log_write(GGML_LOG_LEVEL_ERROR, __VA_ARGS__)

// Devices from shared libraries: a library that exports GGML_DEVICE_ENTRY is opened and its registry added to the list.
#include "device/device.h"
#include "base/env.h"
#include "base/log.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LOADED = 32 };

struct loaded {
    ggml_backend_reg_t reg;
    void *library;
};

static struct loaded loaded[MAX_LOADED];
static size_t n_loaded;
static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;

static ggml_backend_reg_t enter_library(void *library, const char *path) {
    ggml_device_entry_t entry;
    void *symbol = dlsym(library, GGML_DEVICE_ENTRY);
    if (!symbol) DEVICE_FAIL(NULL, ERR_FORMAT, "%s is not a device library: it does not export %s", path, GGML_DEVICE_ENTRY);
    memcpy(&entry, &symbol, sizeof(entry));
    const ggml_backend_reg_t reg = entry(GGML_DEVICE_API_VERSION);
    if (!reg)
        DEVICE_FAIL(NULL, ERR_UNSUPPORTED, "device library %s offers nothing for interface version %d", path,
                    GGML_DEVICE_API_VERSION);
    if (reg->api_version != GGML_DEVICE_API_VERSION) {
        DEVICE_FAIL(NULL, ERR_UNSUPPORTED, "device library %s speaks interface version %d, this library %d: rebuild it",
                    path, reg->api_version, GGML_DEVICE_API_VERSION);
    }
    return reg;
}

// Opened before: the same registry again. False when there is no room to remember it.
static bool remember(ggml_backend_reg_t reg, void *library) {
    for (size_t i = 0; i < n_loaded; i++) {
        if (loaded[i].reg != reg) continue;
        dlclose(library);  // one reference is enough
        return true;
    }
    if (n_loaded == MAX_LOADED) DEVICE_FAIL(false, ERR_NOMEM, "%d device libraries are loaded: no more fit", MAX_LOADED);
    loaded[n_loaded++] = (struct loaded){reg, library};
    return true;
}

ggml_backend_reg_t ggml_backend_load(const char *path) {
    if (!path) DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_load: no path");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        DEVICE_FAIL(NULL, ERR_IO, "cannot load device library %s: %s", path, why ? why : "unknown reason");
    }
    pthread_mutex_lock(&loaded_lock);
    ggml_backend_reg_t reg = enter_library(library, path);
    if (!reg || !remember(reg, library)) {
        dlclose(library);
        reg = NULL;
    }
    pthread_mutex_unlock(&loaded_lock);
    if (reg) ggml_backend_register(reg);
    return reg;
}

void ggml_backend_unload(ggml_backend_reg_t reg) {
    if (!reg) return;
    void *library = NULL;
    pthread_mutex_lock(&loaded_lock);
    for (size_t i = 0; i < n_loaded; i++) {
        if (loaded[i].reg != reg) continue;
        library = loaded[i].library;
        loaded[i] = loaded[--n_loaded];
        break;
    }
    pthread_mutex_unlock(&loaded_lock);
    if (!device_registry_remove(reg)) return;
    if (reg->iface->unload) reg->iface->unload(reg);
    if (library) dlclose(library);
}

// ---- whatever is installed ------------------------------------------------------------------------------------------

static bool is_device_file(const char *name) {
    const size_t n = strlen(name);
    return strncmp(name, "libggml-device-", 15) == 0 && n > 18 && strcmp(name + n - 3, ".so") == 0;
}

void ggml_backend_load_all_from_path(const char *dir_path) {
    if (!dir_path) {
        ggml_backend_load_all();
        return;
    }
    DIR *dir = opendir(dir_path);
    if (!dir) return;
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[4096];
        if (!is_device_file(e->d_name)) continue;
        if (snprintf(path, sizeof(path), "%s/%s", dir_path, e->d_name) >= (int) sizeof(path)) continue;
        if (!ggml_backend_load(path)) log_warn("device library %s was left out\n", path);
    }
    closedir(dir);
}

void ggml_backend_load_all(void) {
    Dl_info info;
    if (dladdr((const void *) &n_loaded, &info) && info.dli_fname) {  // beside this library
        char dir[4096];
        const char *slash = strrchr(info.dli_fname, '/');
        const size_t n = slash ? (size_t) (slash - info.dli_fname) : 0;
        if (slash && n < sizeof(dir)) {
            memcpy(dir, info.dli_fname, n);
            dir[n] = '\0';
            ggml_backend_load_all_from_path(dir);
        }
    }
    const char *list = env_get("GGML_BACKEND_PATH");
    while (list && *list) {
        char dir[4096];
        const size_t n = strcspn(list, ":");
        if (n > 0 && n < sizeof(dir)) {
            memcpy(dir, list, n);
            dir[n] = '\0';
            ggml_backend_load_all_from_path(dir);
        }
        list += n + (list[n] == ':');
    }
}

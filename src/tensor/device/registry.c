// The list of registries and their devices. Built-in ones come from devices.def at first use; programs and device libraries
// add theirs. Devices keep their index while their registry is loaded. A lock protects the list, never held while a device's
// own code runs, except to enumerate a new registry's devices.
#include "device/device.h"
#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_REG = 64, MAX_DEV = 256 };

static struct registry {
    pthread_mutex_t lock;
    pthread_once_t once;
    ggml_backend_reg_t regs[MAX_REG];
    ggml_backend_dev_t devs[MAX_DEV];
    size_t n_regs, n_devs;
} reg_list = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

#define DEVICE(f) ggml_backend_reg_t f(void);
#include "device/devices.def"
#undef DEVICE

static enum err add_device(struct registry *r, ggml_backend_dev_t dev) {
    for (size_t i = 0; i < r->n_devs; i++) {
        if (r->devs[i] == dev) return ERR_OK;
    }
    if (r->n_devs == MAX_DEV) return err_set(ERR_NOMEM, "device registry is full: %d devices", MAX_DEV);
    r->devs[r->n_devs++] = dev;
    return ERR_OK;
}

static enum err add_registry(struct registry *r, ggml_backend_reg_t reg) {
    for (size_t i = 0; i < r->n_regs; i++) {
        if (r->regs[i] == reg) return ERR_OK;
    }
    if (reg->api_version != GGML_DEVICE_API_VERSION) {
        return err_set(ERR_UNSUPPORTED, "device registry speaks interface version %d, this library %d: rebuild the device",
                       reg->api_version, GGML_DEVICE_API_VERSION);
    }
    if (r->n_regs == MAX_REG) return err_set(ERR_NOMEM, "device registry is full: %d kinds of devices", MAX_REG);
    r->regs[r->n_regs++] = reg;
    const size_t n = reg->iface->get_device_count(reg);
    for (size_t i = 0; i < n; i++) TRY(add_device(r, reg->iface->get_device(reg, i)));
    return ERR_OK;
}

static ggml_backend_reg_t (*const builtin[])(void) = {
#define DEVICE(f) f,
#include "device/devices.def"
#undef DEVICE
};

static void add_builtin(void) {
    for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++) {
        const ggml_backend_reg_t reg = builtin[i]();
        if (reg && add_registry(&reg_list, reg) != ERR_OK)
            log_warn("a built-in device was left out: %s\n", ggml_last_error());
    }
}

static struct registry *lock_registry(void) {
    pthread_once(&reg_list.once, add_builtin);
    pthread_mutex_lock(&reg_list.lock);
    return &reg_list;
}

static void unlock_registry(struct registry *r) { pthread_mutex_unlock(&r->lock); }

void ggml_backend_register(ggml_backend_reg_t reg) {
    if (!reg) return;
    struct registry *r = lock_registry();
    (void) !add_registry(r, reg);
    unlock_registry(r);
}

void ggml_backend_device_register(ggml_backend_dev_t device) {
    if (!device) return;
    struct registry *r = lock_registry();
    (void) !add_device(r, device);
    unlock_registry(r);
}

bool device_registry_remove(ggml_backend_reg_t reg) {
    struct registry *r = lock_registry();
    bool found = false;
    size_t n = 0;
    for (size_t i = 0; i < r->n_regs; i++) {
        if (r->regs[i] == reg)
            found = true;
        else
            r->regs[n++] = r->regs[i];
    }
    r->n_regs = n;
    n = 0;
    for (size_t i = 0; i < r->n_devs; i++) {
        if (r->devs[i]->reg != reg) r->devs[n++] = r->devs[i];
    }
    r->n_devs = n;
    unlock_registry(r);
    return found;
}

size_t ggml_backend_reg_count(void) {
    struct registry *r = lock_registry();
    const size_t n = r->n_regs;
    unlock_registry(r);
    return n;
}

ggml_backend_reg_t ggml_backend_reg_get(size_t index) {
    struct registry *r = lock_registry();
    const ggml_backend_reg_t reg = index < r->n_regs ? r->regs[index] : NULL;
    const size_t n = r->n_regs;
    unlock_registry(r);
    if (!reg) (void) err_set(ERR_INVALID, "there is no device registry %zu: %zu are known", index, n);
    return reg;
}

ggml_backend_reg_t ggml_backend_reg_by_name(const char *name) {
    if (!name) return NULL;
    struct registry *r = lock_registry();
    ggml_backend_reg_t found = NULL;
    for (size_t i = 0; i < r->n_regs && !found; i++) {
        if (strcasecmp(r->regs[i]->iface->get_name(r->regs[i]), name) == 0) found = r->regs[i];
    }
    unlock_registry(r);
    return found;
}

size_t ggml_backend_dev_count(void) {
    struct registry *r = lock_registry();
    const size_t n = r->n_devs;
    unlock_registry(r);
    return n;
}

ggml_backend_dev_t ggml_backend_dev_get(size_t index) {
    struct registry *r = lock_registry();
    const ggml_backend_dev_t dev = index < r->n_devs ? r->devs[index] : NULL;
    const size_t n = r->n_devs;
    unlock_registry(r);
    if (!dev) (void) err_set(ERR_INVALID, "there is no device %zu: %zu are known", index, n);
    return dev;
}

ggml_backend_dev_t ggml_backend_dev_by_name(const char *name) {
    if (!name) return NULL;
    struct registry *r = lock_registry();
    ggml_backend_dev_t found = NULL;
    for (size_t i = 0; i < r->n_devs && !found; i++) {
        if (strcasecmp(r->devs[i]->iface->get_name(r->devs[i]), name) == 0) found = r->devs[i];
    }
    unlock_registry(r);
    return found;
}

ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type) {
    struct registry *r = lock_registry();
    ggml_backend_dev_t found = NULL;
    for (size_t i = 0; i < r->n_devs && !found; i++) {
        if (r->devs[i]->iface->get_type(r->devs[i]) == type) found = r->devs[i];
    }
    unlock_registry(r);
    return found;
}

const char *ggml_backend_reg_name(ggml_backend_reg_t reg) { return reg ? reg->iface->get_name(reg) : ""; }

size_t ggml_backend_reg_dev_count(ggml_backend_reg_t reg) { return reg ? reg->iface->get_device_count(reg) : 0; }

ggml_backend_dev_t ggml_backend_reg_dev_get(ggml_backend_reg_t reg, size_t index) {
    if (!reg) DEVICE_FAIL(NULL, ERR_INVALID, "ggml_backend_reg_dev_get: no registry");
    const size_t n = reg->iface->get_device_count(reg);
    if (index >= n)
        DEVICE_FAIL(NULL, ERR_INVALID, "registry %s has no device %zu: it has %zu", ggml_backend_reg_name(reg), index, n);
    return reg->iface->get_device(reg, index);
}

void *ggml_backend_reg_get_proc_address(ggml_backend_reg_t reg, const char *name) {
    if (!reg || !name || !reg->iface->get_proc_address) return NULL;
    return reg->iface->get_proc_address(reg, name);
}

ggml_backend_t ggml_backend_init_by_name(const char *name, const char *params) {
    const ggml_backend_dev_t dev = ggml_backend_dev_by_name(name);
    if (!dev) DEVICE_FAIL(NULL, ERR_INVALID, "there is no device named '%s'", name ? name : "(null)");
    return ggml_backend_dev_init(dev, params);
}

ggml_backend_t ggml_backend_init_by_type(enum ggml_backend_dev_type type, const char *params) {
    const ggml_backend_dev_t dev = ggml_backend_dev_by_type(type);
    if (!dev) DEVICE_FAIL(NULL, ERR_INVALID, "there is no device of type %d", (int) type);
    return ggml_backend_dev_init(dev, params);
}

ggml_backend_t ggml_backend_init_best(void) {
    ggml_backend_dev_t dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_GPU);
    if (!dev) dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_IGPU);
    if (!dev) dev = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (!dev) DEVICE_FAIL(NULL, ERR_UNSUPPORTED, "there is no device at all");
    return ggml_backend_dev_init(dev, NULL);
}

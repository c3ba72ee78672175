/* A libvirt QEMU hook that admits domains to parts of GPUs. README.md says how it is set up. */
#ifndef HOOK_H
#define HOOK_H

#include <slicewise.h>
#include <stddef.h>

/* Prints one line for the administrator; at `prepare begin` libvirt shows it to the user. Always false. */
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* config.c: where the state is, and which of its nodes this host is. */
struct config {
  char *state;
  char *node; /* NULL: any */
};

int config_read(struct config *config);
void config_free(struct config *config);

/* domain.c: what a domain asks for. */
#define DOMAIN_NAMESPACE "https://slicewise.dev/domain/1"

struct domain {
  int asks; /* 0: it has no element of our namespace */
  char *tenant;
  char *profile;
  slicewise_request request; /* all but its name and node; texts are the domain's own */
};

int domain_read(struct domain *domain, const char *xml, size_t length);
void domain_free(struct domain *domain);

/* store.c: the state file, locked from opening to closing. */
struct store {
  char *path;
  int lock;
  slicewise_engine *engine;
};

int store_open(struct store *store, const char *path);
int store_save(struct store *store);
void store_close(struct store *store);

/* file.c */
char *read_all(int file, size_t *length);

#endif

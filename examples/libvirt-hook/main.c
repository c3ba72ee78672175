/*
 * Called by libvirt as `qemu NAME OPERATION SUB-OPERATION EXTRA`, with the domain's XML on standard input.
 *
 *   prepare begin     admit the domain, or refuse its start: reason on standard error, exit code 1
 *   reconnect begin   the daemon restarted: see that the running domain is still admitted; never fails, for libvirt
 *                     would kill the domain
 *   release end       end what the domain had; one that was never admitted had nothing
 *
 * Nothing else is of interest, and a domain that asks for nothing is none of our business.
 */
#include "hook.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("slicewise: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return 0;
}

/* Domains of several hosts may be in one state: names are unique on a node only. The caller frees it. */
static char *lease_name(const struct config *config, const char *domain) {
  size_t length = strlen(domain) + (config->node != NULL ? strlen(config->node) : 0) + 2;
  char *name = malloc(length);
  if (name != NULL) {
    snprintf(name, length, "%s%s%s", config->node != NULL ? config->node : "", config->node != NULL ? "/" : "", domain);
  }
  return name;
}

static int is(slicewise_text text, const char *expected) {
  return text.length == strlen(expected) && memcmp(text.data, expected, text.length) == 0;
}

static int has_what_is_asked(const slicewise_placement *placement, const slicewise_request *request) {
  switch (request->ask) {
  case SLICEWISE_ASK_PROFILE:
    return is(placement->profile, request->profile) || is(placement->compute_profile, request->profile);
  case SLICEWISE_ASK_GPUS:
    return placement->kind == SLICEWISE_PART_WHOLE;
  default:
    return placement->kind == SLICEWISE_PART_FRACTION && placement->gpu_memory_mib == request->gpu_memory_mib &&
           placement->milli == (request->ask == SLICEWISE_ASK_MPS ? 10 * request->threads_percent : request->milli);
  }
}

/* Whether the lease is there already and has what is asked: libvirt, or the host before it went down, called before. */
static int is_admitted(slicewise_engine *engine, const slicewise_request *request) {
  slicewise_placement placement = {.struct_size = sizeof placement};
  uint32_t members = request->count > 0 ? request->count : 1;
  uint32_t expected = request->ask == SLICEWISE_ASK_GPUS ? members * request->gpus : members, found = 0;

  while (slicewise_engine_placement(engine, request->name, found, &placement) == SLICEWISE_STATUS_OK) {
    if (!has_what_is_asked(&placement, request)) {
      return 0;
    }
    found++;
  }
  return found > 0 && found == expected;
}

static int refuse(slicewise_decision *decision, const char *domain, const slicewise_summary *summary) {
  const char *answer = summary->verdict == SLICEWISE_VERDICT_UNDECIDED ? "is not decided within the budget of work"
                                                                         : "is refused";
  uint32_t i;
  complain("domain `%s` %s", domain, answer);
  for (i = 0; i < summary->reasons; i++) {
    char reason[512];
    if (slicewise_decision_reason(decision, i, reason, sizeof reason, NULL) == SLICEWISE_STATUS_OK) {
      complain("  %s", reason);
    }
  }
  return 0;
}

/* Decides and commits, in the store's memory. */
static int place(struct store *store, const char *domain, const slicewise_request *request) {
  slicewise_decision *decision = slicewise_decision_new();
  slicewise_summary summary = {.struct_size = sizeof summary};
  slicewise_status status = slicewise_engine_decide(store->engine, request, decision, &summary);
  int good = 0;

  if (status == SLICEWISE_STATUS_OK && summary.verdict != SLICEWISE_VERDICT_ADMIT) {
    refuse(decision, domain, &summary);
  } else {
    if (status == SLICEWISE_STATUS_OK) {
      status = slicewise_engine_commit(store->engine, decision, NULL);
    }
    good = status == SLICEWISE_STATUS_OK || complain("domain `%s`: %s", domain, slicewise_engine_last_error(store->engine));
  }
  slicewise_decision_free(decision);
  return good;
}

static int admit(const struct config *config, const char *name, struct domain *domain) {
  struct store store;
  char *lease = lease_name(config, name);
  int good;

  if (lease == NULL) {
    return complain("out of memory");
  }
  domain->request.name = lease;
  domain->request.node = config->node;
  good = store_open(&store, config->state);
  if (good) {
    if (!is_admitted(store.engine, &domain->request)) {
      /* What an earlier start left behind, with another request, goes first. */
      slicewise_engine_release(store.engine, lease, NULL);
      good = place(&store, name, &domain->request) && store_save(&store);
    }
    store_close(&store);
  }
  free(lease);
  return good;
}

static int release(const struct config *config, const char *name) {
  struct store store;
  char *lease = lease_name(config, name);
  slicewise_status status;
  int good = lease != NULL && store_open(&store, config->state);

  if (good) {
    status = slicewise_engine_release(store.engine, lease, NULL);
    if (status == SLICEWISE_STATUS_OK) {
      good = store_save(&store);
    } else if (status != SLICEWISE_STATUS_UNKNOWN_LEASE) {
      good = complain("%s", slicewise_engine_last_error(store.engine));
    }
    store_close(&store);
  }
  free(lease);
  return good;
}

/* What the domain asks for, as it was when libvirt called. */
static int begin(const char *name, const char *xml, size_t length) {
  struct config config = {NULL, NULL};
  struct domain domain;
  int good = domain_read(&domain, xml, length);

  if (good && domain.asks) {
    good = config_read(&config) && admit(&config, name, &domain);
  }
  config_free(&config);
  domain_free(&domain);
  return good;
}

/* By name alone: the metadata of a running domain can be edited. */
static int end(const char *name) {
  struct config config = {NULL, NULL};
  int good = config_read(&config) && release(&config, name);

  config_free(&config);
  return good;
}

int main(int argc, char **argv) {
  const char *operation = argc > 2 ? argv[2] : "", *part = argc > 3 ? argv[3] : "";
  size_t length = 0;
  char *xml;
  int good = 1;

  if (argc < 4) {
    complain("called as `%s NAME OPERATION SUB-OPERATION EXTRA` by libvirt", argv[0]);
    return 2;
  }
  /* Read in any case: libvirt writes it in any case. */
  xml = read_all(STDIN_FILENO, &length);
  if (xml == NULL) {
    complain("standard input: %s", strerror(errno));
    return 1;
  }
  if (strcmp(operation, "prepare") == 0 && strcmp(part, "begin") == 0) {
    good = begin(argv[1], xml, length);
  } else if (strcmp(operation, "reconnect") == 0 && strcmp(part, "begin") == 0) {
    begin(argv[1], xml, length);
  } else if (strcmp(operation, "release") == 0 && strcmp(part, "end") == 0) {
    good = end(argv[1]);
  }
  free(xml);
  return good ? 0 : 1;
}

#include "hook.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int is_named(const xmlNode *node, const char *name) {
  return node->type == XML_ELEMENT_NODE && xmlStrEqual(node->name, (const xmlChar *)name);
}

static int is_ours(const xmlNode *node) {
  return node->type == XML_ELEMENT_NODE && node->ns != NULL &&
         xmlStrEqual(node->ns->href, (const xmlChar *)DOMAIN_NAMESPACE);
}

static int number(const char *name, const char *text, uint32_t *value) {
  unsigned long long parsed = 0;
  const char *at;
  for (at = text; *at >= '0' && *at <= '9' && parsed <= UINT32_MAX; at++) {
    parsed = 10 * parsed + (unsigned)(*at - '0');
  }
  if (at == text || *at != 0 || parsed == 0 || parsed > UINT32_MAX) {
    return complain("metadata: `%s` is `%s`, expected a whole number above 0", name, text);
  }
  *value = (uint32_t)parsed;
  return 1;
}

/* Takes over `value`. */
static int attribute(struct domain *domain, const char *name, char *value) {
  slicewise_request *request = &domain->request;
  struct {
    const char *name;
    uint32_t *value;
  } const numbers[] = {
      {"count", &request->count},           {"milli", &request->milli},
      {"gpus", &request->gpus},             {"threads-percent", &request->threads_percent},
      {"contexts", &request->contexts},     {"gpu-memory-mib", &request->gpu_memory_mib},
  };
  size_t i;
  int good = 0, known = 0;

  if (strcmp(name, "tenant") == 0 || strcmp(name, "profile") == 0) {
    char **field = *name == 't' ? &domain->tenant : &domain->profile;
    *field = value;
    return *value != 0 || complain("metadata: `%s` is empty", name);
  }
  for (i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (strcmp(name, numbers[i].name) == 0) {
      known = 1;
      good = number(name, value, numbers[i].value);
    }
  }
  free(value);
  return known ? good : complain("metadata: unknown attribute `%s`", name);
}

/* Exactly one attribute says what is asked. */
static int set_kind(struct domain *domain) {
  slicewise_request *request = &domain->request;
  int kinds = (domain->profile != NULL) + (request->milli > 0) + (request->gpus > 0) + (request->threads_percent > 0);
  if (kinds != 1) {
    return complain("metadata: expected one of `profile`, `milli`, `gpus`, `threads-percent`, found %d", kinds);
  }
  request->tenant = domain->tenant;
  request->profile = domain->profile;
  request->ask = domain->profile != NULL  ? SLICEWISE_ASK_PROFILE
                 : request->milli > 0     ? SLICEWISE_ASK_FRACTION
                 : request->gpus > 0      ? SLICEWISE_ASK_GPUS
                                          : SLICEWISE_ASK_MPS;
  return 1;
}

static int read_gpu(struct domain *domain, xmlNode *gpu) {
  xmlAttr *found;
  xmlNode *child;

  if (!is_named(gpu, "gpu")) {
    return complain("metadata: unknown element `%s`; expected `gpu`", (const char *)gpu->name);
  }
  for (child = gpu->children; child != NULL; child = child->next) {
    if (child->type == XML_ELEMENT_NODE) {
      return complain("metadata: `gpu` has no elements, but `%s` is in it", (const char *)child->name);
    }
  }
  for (found = gpu->properties; found != NULL; found = found->next) {
    xmlChar *value = xmlNodeListGetString(gpu->doc, found->children, 1);
    char *copy = strdup(value != NULL ? (const char *)value : "");
    xmlFree(value);
    if (copy == NULL || !attribute(domain, (const char *)found->name, copy)) {
      return copy != NULL ? 0 : complain("out of memory");
    }
  }
  return set_kind(domain);
}

static int read_metadata(struct domain *domain, xmlNode *metadata) {
  xmlNode *child;
  for (child = metadata->children; child != NULL; child = child->next) {
    if (!is_ours(child)) {
      continue;
    }
    if (domain->asks) {
      return complain("metadata: more than one element of %s", DOMAIN_NAMESPACE);
    }
    domain->asks = 1;
    if (!read_gpu(domain, child)) {
      return 0;
    }
  }
  return 1;
}

/* Reads the request in the domain's <metadata>. */
int domain_read(struct domain *domain, const char *xml, size_t length) {
  const int options = XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING;
  xmlDoc *document = length <= INT_MAX ? xmlReadMemory(xml, (int)length, "domain.xml", NULL, options) : NULL;
  xmlNode *root, *child;
  int good = 1;

  memset(domain, 0, sizeof *domain);
  domain->request.struct_size = sizeof domain->request;
  if (document == NULL) {
    return complain("the domain is not well-formed XML");
  }
  root = xmlDocGetRootElement(document);
  if (root == NULL || !is_named(root, "domain")) {
    good = complain("expected the XML of a domain");
  }
  for (child = good ? root->children : NULL; good && child != NULL; child = child->next) {
    if (is_named(child, "metadata")) {
      good = read_metadata(domain, child);
    }
  }
  xmlFreeDoc(document);
  xmlCleanupParser();
  return good;
}

void domain_free(struct domain *domain) {
  free(domain->tenant);
  free(domain->profile);
}

/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "slicewise.h"

#define OK(call) assert((call) == SLICEWISE_STATUS_OK)
#define IS(call, status) assert((call) == SLICEWISE_STATUS_##status)

/* A GPU cut into MIG instances, and one that is not. */
#define STATE                                                                                                          \
  "{\"nodes\":[{\"name\":\"n1\",\"gpus\":[{\"model\":\"a100-80gb\",\"mode\":\"mig\"}]},"                               \
  "{\"name\":\"n2\",\"gpus\":[{\"model\":\"a100-80gb\"}]}]}"

static inline slicewise_engine *loaded(const char *state) {
  slicewise_engine *engine = slicewise_engine_new();
  assert(engine != NULL);
  OK(slicewise_engine_load(engine, state));
  return engine;
}

static inline int is(slicewise_text text, const char *expected) {
  return text.length == strlen(expected) && memcmp(text.data, expected, text.length) == 0;
}

#endif

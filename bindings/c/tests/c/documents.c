/* The calls that take and give documents, and a round trip of the state. */
#include "check.h"

#define REQUEST "{\"name\": \"a\", \"profile\": \"3g.40gb\"}"

static void commits_what_it_decided(void) {
  slicewise_engine *engine = loaded(STATE);
  char *decision = NULL, *before = NULL, *after = NULL, *why = NULL;
  uint64_t version = 0;

  OK(slicewise_engine_decide_json(engine, REQUEST, &decision));
  assert(strstr(decision, "\"verdict\": \"admit\"") != NULL && decision[strlen(decision) - 1] == '\n');
  OK(slicewise_engine_snapshot(engine, &before));
  OK(slicewise_engine_commit_json(engine, REQUEST, decision, &version));
  assert(version == 1);
  IS(slicewise_engine_commit_json(engine, REQUEST, decision, &version), DUPLICATE);
  OK(slicewise_engine_snapshot(engine, &after));
  assert(strcmp(before, after) != 0 && strstr(after, "\"leases\"") != NULL);
  OK(slicewise_engine_load(engine, after));
  slicewise_string_free(before);
  OK(slicewise_engine_snapshot(engine, &before));
  assert(strcmp(before, after) == 0);
  OK(slicewise_engine_explain_json(engine, "{\"name\": \"b\", \"profile\": \"7g.80gb\"}", &why));
  assert(strstr(why, "\"remedies\"") != NULL);
  slicewise_string_free(before);
  slicewise_string_free(after);
  slicewise_string_free(decision);
  slicewise_string_free(why);
  slicewise_engine_free(engine);
}

static void adopts_what_it_planned(void) {
  slicewise_engine *engine = loaded(STATE);
  slicewise_info info = {.struct_size = sizeof info};
  char *plan = NULL;

  OK(slicewise_engine_plan_json(engine, "profile,count\n3g.40gb,2\n", SLICEWISE_OBJECTIVE_FEWEST_GPUS, &plan));
  assert(strstr(plan, "\"verified\": true") != NULL);
  OK(slicewise_engine_adopt_json(engine, plan, NULL));
  OK(slicewise_engine_query(engine, &info));
  assert(info.leases >= 1 && info.version == 1);
  slicewise_string_free(plan);
  slicewise_engine_free(engine);
}

int main(void) {
  commits_what_it_decided();
  adopts_what_it_planned();
  return 0;
}

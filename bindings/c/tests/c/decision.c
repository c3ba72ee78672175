/* The typed calls: decide, look, commit, undo, release. */
#include "check.h"

static slicewise_request asks(const char *name, const char *profile) {
  slicewise_request request;
  memset(&request, 0, sizeof request);
  request.struct_size = sizeof request;
  request.name = name;
  request.profile = profile;
  return request;
}

static void admits_commits_undoes_and_releases(void) {
  slicewise_engine *engine = loaded(STATE);
  slicewise_decision *decision = slicewise_decision_new();
  slicewise_request request = asks("train", "3g.40gb");
  slicewise_summary summary = {.struct_size = sizeof summary};
  slicewise_placement placement = {.struct_size = sizeof placement};
  slicewise_info before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  uint64_t version = 0;

  request.count = 2;
  request.tenant = "acme";
  request.node = "n1";
  OK(slicewise_engine_query(engine, &before));
  assert(before.nodes == 2 && before.gpus == 2 && before.leases == 0);
  OK(slicewise_engine_decide(engine, &request, decision, &summary));
  assert(summary.verdict == SLICEWISE_VERDICT_ADMIT && summary.proved && summary.placements == 2);
  assert(summary.reason == SLICEWISE_STATUS_OK && summary.reasons == 0);
  OK(slicewise_engine_query(engine, &after));
  assert(after.version == before.version);

  OK(slicewise_decision_placement(decision, 1, &placement));
  assert(is(placement.node, "n1") && placement.gpu == 0 && placement.member == 1);
  assert(placement.kind == SLICEWISE_PART_INSTANCE && is(placement.profile, "3g.40gb"));
  assert(placement.start % 4 == 0 && placement.size == 4 && placement.struct_size == sizeof placement);
  IS(slicewise_decision_placement(decision, 2, &placement), OUT_OF_RANGE);
  IS(slicewise_decision_reason(decision, 0, NULL, 0, NULL), OUT_OF_RANGE);

  OK(slicewise_engine_commit(engine, decision, &version));
  assert(version == before.version + 1);
  IS(slicewise_engine_commit(engine, decision, NULL), DUPLICATE);
  assert(strstr(slicewise_engine_last_error(engine), "`train`") != NULL);
  OK(slicewise_engine_placement(engine, "train", 0, &placement));
  assert(is(placement.profile, "3g.40gb"));
  assert(strcmp(slicewise_engine_last_error(engine), "") == 0);
  OK(slicewise_engine_undo(engine, decision, &version));
  IS(slicewise_engine_undo(engine, decision, &version), EMPTY_HANDLE);
  IS(slicewise_engine_placement(engine, "train", 0, &placement), UNKNOWN_LEASE);

  OK(slicewise_engine_decide(engine, &request, decision, NULL));
  OK(slicewise_engine_commit(engine, decision, NULL));
  OK(slicewise_engine_release(engine, "train", &version));
  IS(slicewise_engine_release(engine, "train", &version), UNKNOWN_LEASE);
  OK(slicewise_engine_query(engine, &after));
  assert(after.version == version && after.leases == 0);
  slicewise_decision_free(decision);
  slicewise_engine_free(engine);
}

static void says_why_not(void) {
  slicewise_engine *engine = loaded(STATE);
  slicewise_decision *decision = slicewise_decision_new();
  slicewise_request request = asks("full", "7g.80gb");
  slicewise_summary summary = {.struct_size = sizeof summary};
  char text[256], exact[256];
  size_t length = 0, again = 0;

  OK(slicewise_engine_decide(engine, &request, decision, NULL));
  OK(slicewise_engine_commit(engine, decision, NULL));
  request.name = "more";
  OK(slicewise_engine_decide(engine, &request, decision, &summary));
  assert(summary.verdict == SLICEWISE_VERDICT_REJECT && summary.proved && summary.placements == 0);
  assert(summary.reason == SLICEWISE_STATUS_MODE_MISMATCH && summary.reasons == 2);
  OK(slicewise_decision_reason(decision, 1, text, sizeof text, &length));
  assert(strlen(text) == length && strstr(text, "insufficient_slices (120)") == text);
  IS(slicewise_decision_reason(decision, 1, exact, length, &again), BUFFER_TOO_SMALL);
  assert(again == length);
  IS(slicewise_decision_reason(decision, 1, NULL, 0, &again), BUFFER_TOO_SMALL);
  OK(slicewise_decision_reason(decision, 1, exact, length + 1, NULL));
  assert(strcmp(text, exact) == 0);
  IS(slicewise_engine_commit(engine, decision, NULL), NOT_ADMITTED);
  slicewise_decision_free(decision);
  slicewise_engine_free(engine);
}

static void serves_each_kind_of_ask(void) {
  const char *mps = "{\"nodes\":[{\"name\":\"n\",\"gpus\":[{\"model\":\"a100-80gb\",\"mode\":\"mps\"}]}]}";
  slicewise_engine *engine = loaded(STATE), *clients = loaded(mps);
  slicewise_decision *decision = slicewise_decision_new();
  slicewise_request request = asks("x", NULL);
  slicewise_placement placement = {.struct_size = sizeof placement};

  request.ask = SLICEWISE_ASK_FRACTION;
  request.milli = 250;
  request.gpu_memory_mib = 1000;
  OK(slicewise_engine_decide(engine, &request, decision, NULL));
  OK(slicewise_decision_placement(decision, 0, &placement));
  assert(placement.kind == SLICEWISE_PART_FRACTION && placement.milli == 250 && placement.gpu_memory_mib == 1000);
  assert(is(placement.node, "n2") && placement.profile.length == 0);

  request.ask = SLICEWISE_ASK_GPUS;
  request.gpus = 1;
  OK(slicewise_engine_decide(engine, &request, decision, NULL));
  OK(slicewise_decision_placement(decision, 0, &placement));
  assert(placement.kind == SLICEWISE_PART_WHOLE && placement.milli == 0);

  request.ask = SLICEWISE_ASK_MPS;
  request.threads_percent = 30;
  OK(slicewise_engine_decide(clients, &request, decision, NULL));
  OK(slicewise_decision_placement(decision, 0, &placement));
  assert(placement.kind == SLICEWISE_PART_FRACTION && placement.milli == 300 && placement.contexts == 1);

  request.milli = 70000;
  request.ask = SLICEWISE_ASK_FRACTION;
  IS(slicewise_engine_decide(engine, &request, decision, NULL), OUT_OF_RANGE);
  assert(strstr(slicewise_engine_last_error(engine), "milli") != NULL);
  request.ask = 77;
  IS(slicewise_engine_decide(engine, &request, decision, NULL), OUT_OF_RANGE);
  IS(slicewise_decision_placement(decision, 0, &placement), EMPTY_HANDLE);
  slicewise_decision_free(decision);
  slicewise_engine_free(clients);
  slicewise_engine_free(engine);
}

static void refuses_what_is_stale_or_foreign(void) {
  slicewise_engine *one = loaded(STATE), *other = loaded(STATE);
  slicewise_decision *first = slicewise_decision_new(), *second = slicewise_decision_new();
  slicewise_request a = asks("a", "4g.40gb"), b = asks("b", "4g.40gb");

  IS(slicewise_engine_commit(one, first, NULL), EMPTY_HANDLE);
  OK(slicewise_engine_decide(one, &a, first, NULL));
  OK(slicewise_engine_decide(one, &b, second, NULL));
  IS(slicewise_engine_commit(other, first, NULL), FOREIGN_HANDLE);
  OK(slicewise_engine_commit(one, first, NULL));
  IS(slicewise_engine_commit(one, second, NULL), CONFLICT);
  OK(slicewise_engine_load(one, STATE));
  IS(slicewise_engine_commit(one, first, NULL), FOREIGN_HANDLE);
  slicewise_decision_free(first);
  slicewise_decision_free(second);
  slicewise_engine_free(one);
  slicewise_engine_free(other);
}

int main(void) {
  admits_commits_undoes_and_releases();
  says_why_not();
  serves_each_kind_of_ask();
  refuses_what_is_stale_or_foreign();
  return 0;
}

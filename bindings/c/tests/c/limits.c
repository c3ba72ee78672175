/* What callers get wrong: null pointers, texts that are not UTF-8, sizes that no version has. */
#include "check.h"

#include <stdlib.h>

static void survives_null(void) {
  slicewise_engine *engine = loaded(STATE), *empty = slicewise_engine_new();
  slicewise_decision *decision = slicewise_decision_new();
  slicewise_request request = {.struct_size = sizeof request};
  slicewise_info info = {.struct_size = sizeof info};
  slicewise_placement placement = {.struct_size = sizeof placement};
  char *text = NULL;

  slicewise_engine_free(NULL);
  slicewise_decision_free(NULL);
  slicewise_string_free(NULL);
  assert(strcmp(slicewise_engine_last_error(NULL), "") == 0);
  IS(slicewise_engine_load(NULL, STATE), NULL_POINTER);
  IS(slicewise_engine_load(engine, NULL), NULL_POINTER);
  IS(slicewise_engine_query(engine, NULL), NULL_POINTER);
  IS(slicewise_engine_query(empty, &info), EMPTY_HANDLE);
  IS(slicewise_engine_snapshot(engine, NULL), NULL_POINTER);
  IS(slicewise_engine_snapshot(empty, &text), EMPTY_HANDLE);
  IS(slicewise_engine_decide_json(engine, NULL, &text), NULL_POINTER);
  assert(text == NULL);
  IS(slicewise_engine_decide(engine, NULL, decision, NULL), NULL_POINTER);
  IS(slicewise_engine_decide(engine, &request, NULL, NULL), NULL_POINTER);
  IS(slicewise_engine_decide(engine, &request, decision, NULL), NULL_POINTER);
  assert(strcmp(slicewise_engine_last_error(engine), "`name` is null") == 0);
  request.name = "x";
  IS(slicewise_engine_decide(engine, &request, decision, NULL), NULL_POINTER);
  assert(strcmp(slicewise_engine_last_error(engine), "`profile` is null") == 0);
  IS(slicewise_decision_placement(decision, 0, &placement), EMPTY_HANDLE);
  IS(slicewise_decision_reason(decision, 0, NULL, 0, NULL), EMPTY_HANDLE);
  IS(slicewise_engine_placement(engine, NULL, 0, &placement), NULL_POINTER);
  IS(slicewise_engine_release(engine, NULL, NULL), NULL_POINTER);
  IS(slicewise_engine_commit_json(engine, NULL, NULL, NULL), NULL_POINTER);
  IS(slicewise_engine_adopt_json(engine, NULL, NULL), NULL_POINTER);
  slicewise_decision_free(decision);
  slicewise_engine_free(empty);
  slicewise_engine_free(engine);
}

static void refuses_bad_texts_and_keeps_its_state(void) {
  slicewise_engine *engine = loaded(STATE);
  slicewise_info info = {.struct_size = sizeof info};
  char *text = NULL;

  IS(slicewise_engine_load(engine, "\xff"), NOT_UTF8);
  IS(slicewise_engine_load(engine, ""), UNREADABLE);
  IS(slicewise_engine_load(engine, "{\"nodes\": [{\"name\": 1}]}"), UNREADABLE);
  assert(strstr(slicewise_engine_last_error(engine), "state:1:21: nodes[0].name") != NULL);
  IS(slicewise_engine_load(engine, "{\"nodes\":[{\"name\":\"n\",\"gpus\":[{\"model\":\"?\"}]}]}"), UNKNOWN_MODEL);
  IS(slicewise_engine_decide_json(engine, "{\"profile\": \"9g.90gb\"}", &text), UNKNOWN_PROFILE);
  IS(slicewise_engine_plan_json(engine, "{\"profile\": \"1g.10gb\"}", 2, &text), OUT_OF_RANGE);
  assert(text == NULL);
  OK(slicewise_engine_query(engine, &info));
  assert(info.gpus == 2);
  slicewise_engine_free(engine);
}

static void takes_structures_of_other_versions(void) {
  slicewise_engine *engine = loaded(STATE);
  slicewise_decision *decision = slicewise_decision_new();
  struct {
    slicewise_request known;
    uint64_t later;
  } newer;
  struct {
    slicewise_info known;
    uint64_t later;
  } info;
  slicewise_request *request = &newer.known;

  memset(&newer, 0, sizeof newer);
  request->name = "x";
  request->profile = "1g.10gb";
  request->struct_size = 0;
  IS(slicewise_engine_decide(engine, request, decision, NULL), WRONG_STRUCT_SIZE);
  request->struct_size = sizeof(size_t);
  IS(slicewise_engine_decide(engine, request, decision, NULL), WRONG_STRUCT_SIZE);
  request->struct_size = (size_t)-1;
  IS(slicewise_engine_decide(engine, request, decision, NULL), WRONG_STRUCT_SIZE);
  request->struct_size = sizeof newer;
  OK(slicewise_engine_decide(engine, request, decision, NULL));
  newer.later = 1;
  IS(slicewise_engine_decide(engine, request, decision, NULL), WRONG_STRUCT_SIZE);

  memset(&info, 0xff, sizeof info);
  IS(slicewise_engine_query(engine, &info.known), WRONG_STRUCT_SIZE);
  assert(info.known.nodes == UINT64_MAX);
  info.known.struct_size = sizeof info;
  OK(slicewise_engine_query(engine, &info.known));
  assert(info.known.struct_size == sizeof info && info.known.nodes == 2 && info.later == 0);
  slicewise_decision_free(decision);
  slicewise_engine_free(engine);
}

static void names_every_status(void) {
  assert(slicewise_abi_version() == SLICEWISE_ABI_VERSION);
  assert(slicewise_version().length >= 5);
  assert(is(slicewise_status_name(SLICEWISE_STATUS_OK), "ok"));
  assert(is(slicewise_status_name(SLICEWISE_STATUS_FRAGMENTED), "fragmented"));
  assert(is(slicewise_status_name(SLICEWISE_STATUS_UNKNOWN_MODEL), "unknown_model"));
  assert(slicewise_status_text(SLICEWISE_STATUS_POISONED).length > 0);
  assert(slicewise_status_name(-1).length == 0);
}

int main(void) {
  survives_null();
  refuses_bad_texts_and_keeps_its_state();
  takes_structures_of_other_versions();
  names_every_status();
  return EXIT_SUCCESS;
}

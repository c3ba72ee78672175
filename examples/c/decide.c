/* Decides a request on a small fleet, commits it, and says where it lies. */
#include <slicewise.h>
#include <stdio.h>

int main(void) {
  slicewise_engine *engine = slicewise_engine_new();
  slicewise_decision *decision = slicewise_decision_new();
  slicewise_request request = {.struct_size = sizeof request, .name = "train", .profile = "3g.40gb", .count = 2};
  slicewise_summary summary = {.struct_size = sizeof summary};
  slicewise_placement at = {.struct_size = sizeof at};
  slicewise_status status = slicewise_engine_load(engine, "gpus: [{model: a100-80gb, count: 1, mig: true}]");
  char why[256];

  if (status == SLICEWISE_STATUS_OK) {
    status = slicewise_engine_decide(engine, &request, decision, &summary);
  }
  if (status == SLICEWISE_STATUS_OK && summary.verdict == SLICEWISE_VERDICT_ADMIT) {
    status = slicewise_engine_commit(engine, decision, NULL);
    for (uint32_t i = 0; i < summary.placements; i++) {
      slicewise_decision_placement(decision, i, &at);
      printf("member %u: %.*s at %u on %.*s GPU%u\n", at.member, (int)at.profile.length, at.profile.data, at.start,
             (int)at.node.length, at.node.data, at.gpu);
    }
  } else if (status == SLICEWISE_STATUS_OK) {
    slicewise_decision_reason(decision, 0, why, sizeof why, NULL);
    printf("refused: %s\n", why);
  }
  if (status != SLICEWISE_STATUS_OK) {
    fprintf(stderr, "%s\n", slicewise_engine_last_error(engine));
  }
  slicewise_decision_free(decision);
  slicewise_engine_free(engine);
  return status == SLICEWISE_STATUS_OK ? 0 : 1;
}

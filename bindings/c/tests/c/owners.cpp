// The header and its owners in C++17.
#undef NDEBUG
#include "slicewise.h"
#include "slicewise.h"
#include "slicewise.hpp"
#include "slicewise.hpp"

#include <cassert>

int main() {
  auto engine = slicewise::make_engine("gpus: [{model: a100-80gb, count: 1, mig: true}]");
  slicewise::Decision decision(slicewise_decision_new());
  slicewise_request request = {};
  request.struct_size = sizeof request;
  request.name = "a";
  request.profile = "3g.40gb";
  slicewise_summary summary = {};
  summary.struct_size = sizeof summary;
  slicewise::check(engine, slicewise_engine_decide(engine.get(), &request, decision.get(), &summary));
  assert(summary.verdict == SLICEWISE_VERDICT_ADMIT);
  slicewise_placement placement = {};
  placement.struct_size = sizeof placement;
  assert(slicewise_decision_placement(decision.get(), 0, &placement) == SLICEWISE_STATUS_OK);
  assert(slicewise::view(placement.profile) == "3g.40gb");
  char *text = nullptr;
  slicewise::check(engine, slicewise_engine_snapshot(engine.get(), &text));
  slicewise::String snapshot(text);
  try {
    slicewise::make_engine("nodes: 3");
    assert(false);
  } catch (const slicewise::Error &error) {
    assert(error.status == SLICEWISE_STATUS_UNREADABLE);
  }
}

/* Owners of what slicewise.h hands out, for C++17. A moved-from owner is empty. */
#ifndef SLICEWISE_HPP
#define SLICEWISE_HPP

#include "slicewise.h"

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace slicewise {

struct Free {
  void operator()(slicewise_engine *engine) const noexcept { slicewise_engine_free(engine); }
  void operator()(slicewise_decision *decision) const noexcept { slicewise_decision_free(decision); }
  void operator()(char *text) const noexcept { slicewise_string_free(text); }
};

using Engine = std::unique_ptr<slicewise_engine, Free>;
using Decision = std::unique_ptr<slicewise_decision, Free>;
using String = std::unique_ptr<char, Free>;

inline std::string_view view(slicewise_text text) noexcept { return {text.data, text.length}; }

/* A status that is not SLICEWISE_STATUS_OK. */
class Error : public std::runtime_error {
public:
  Error(slicewise_status status, const std::string &what) : std::runtime_error(what), status(status) {}
  const slicewise_status status;
};

/* Throws what the last call on the engine said, unless it is done. */
inline void check(const Engine &engine, slicewise_status status) {
  if (status != SLICEWISE_STATUS_OK) {
    const std::string name(view(slicewise_status_name(status)));
    throw Error(status, name + ": " + slicewise_engine_last_error(engine.get()));
  }
}

inline Engine make_engine(const char *state) {
  Engine engine(slicewise_engine_new());
  if (!engine) throw std::bad_alloc();
  check(engine, slicewise_engine_load(engine.get(), state));
  return engine;
}

} // namespace slicewise

#endif

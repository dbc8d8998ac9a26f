#include "kernels/search/strategies.hpp"

#include "protocol/nearest.hpp"

namespace gristmill {

result<search_strategy> search_strategy_from_text(std::string_view text) {
  if (text == "template")
    return search_strategy::guided;
  if (text == "random")
    return search_strategy::random;
  if (text == "exhaustive")
    return search_strategy::exhaustive;
  return fail(errc::invalid_input,
    "no search is called '" + std::string(text) + "'"
      + suggestion(text, {"template", "random", "exhaustive"}));
}

search_result propose(
  const search_space& space, const search_question& question, search_strategy strategy) {
  switch (strategy) { // no default: the compiler reports a missing case
  case search_strategy::random:
    return propose_random(space, question);
  case search_strategy::exhaustive:
    return propose_exhaustive(space, question);
  case search_strategy::guided:
    break;
  }
  return propose_guided(space, question);
}

} // namespace gristmill

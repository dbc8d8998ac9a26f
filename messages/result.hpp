#pragma once

#include "messages/errc.hpp"

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace gristmill {

/// Why something did not work: a code to decide on and a text for a person.
struct failure {
  errc code = errc::invalid_input;
  /// Whole message: names the file, the field and, where there is one, the nearest valid choice.
  std::string what;

  friend bool operator==(const failure&, const failure&) = default;
};

/// What pure code returns. At the border to the actors one function turns the failure into an
/// error of the actor library.
template <class T>
using result = tl::expected<T, failure>;

/// `return fail(errc::not_found, "…")` in a function that returns a `result`.
inline tl::unexpected<failure> fail(errc code, std::string what) {
  return tl::unexpected<failure>(failure{code, std::move(what)});
}

/// Passes the failure of another result on: `if (!x) return pass(x);`
template <class T>
tl::unexpected<failure> pass(const tl::expected<T, failure>& other) {
  return tl::unexpected<failure>(other.error());
}

} // namespace gristmill

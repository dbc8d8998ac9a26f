#pragma once

#include "messages/blob.hpp"
#include "messages/caf_seam.hpp"
#include "messages/errc.hpp"
#include "messages/result.hpp"
#include "messages/wire.hpp"

namespace gristmill {

GRISTMILL_FIELDS(f64, bits)
GRISTMILL_FIELDS(blob_ref, sha256, bytes)

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, maybe<T>& x) {
  return f(caf::meta::type_name("maybe"), x.has, x.value);
}

} // namespace gristmill

CAF_ERROR_CODE_ENUM(gristmill::errc, "gristmill")

namespace gristmill {

/// The border: what pure code returns becomes an error of the actor library here, and only here.
inline caf::error to_error(const failure& what) {
  return caf::make_error(what.code, what.what);
}

/// The other way round, for what is logged: the text of the context, or the code's name.
inline failure from_error(const caf::actor_system& system, const caf::error& error) {
  failure out{errc::child_failed, system.render(error)};
  if (error.category() == caf::atom("gristmill")) {
    out.code = static_cast<errc>(error.code());
    if (error.context().match_elements<std::string>())
      out.what = error.context().get_as<std::string>(0);
  }
  return out;
}

} // namespace gristmill

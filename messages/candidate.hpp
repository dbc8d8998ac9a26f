#pragma once

#include "messages/blob.hpp"

#include <string>

namespace gristmill {

/// One candidate: device code and launch plan, by content.
struct candidate_ref {
  /// SHA-256 over both hashes; what results are stamped with.
  std::string hash;
  blob_ref source;
  blob_ref plan;
  /// The proposer's own stable name for it within the problem, such as a point of its search space.
  std::string key;
  /// Hash of the candidate it was derived from; empty for none.
  std::string parent;
  /// What the candidate tests, in words.
  std::string hypothesis;

  friend bool operator==(const candidate_ref&, const candidate_ref&) = default;
};

} // namespace gristmill

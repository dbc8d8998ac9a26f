#pragma once

#include "llm/transport/key.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// How often something was blacked out.
struct redaction_count {
  size_t known = 0;
  size_t by_form = 0;

  friend bool operator==(const redaction_count&, const redaction_count&) = default;
};

/// Blacks out secrets: values that it was told of (also as JSON and URLs escape them), and what
/// looks like one: the forms of well-known providers, "Bearer …", and parameters of URLs with a
/// telling name. A secret cut in two and handed over in two texts is not seen.
class redactor {
public:
  /// Shorter values are not looked for: they would be found in every text.
  static constexpr size_t known_size_min = 8;
  static constexpr std::string_view mark = "[redacted]";

  void know(std::string_view secret);

  std::string redact(std::string_view text, redaction_count* count = nullptr) const;
  /// Also the user's name and password and the values of parameters such as `key`.
  std::string redact_url(std::string_view url, redaction_count* count = nullptr) const;

private:
  std::vector<secret_text> known_;
};

} // namespace gristmill

#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <sys/types.h>

namespace gristmill {

/// nginx in front of a server on this machine: TLS by a certificate of its own, and HTTP/2 or only
/// HTTP/1.1. Needs nginx and openssl.
class nginx {
public:
  enum class speaks : uint8_t { http2, http1 };

  /// Which program is missing; nothing when none is.
  static std::optional<std::string> missing();

  nginx(int upstream_port, speaks what);
  ~nginx();
  nginx(const nginx&) = delete;
  nginx& operator=(const nginx&) = delete;

  std::string url(const std::string& path = "/v1/chat") const;
  std::string ca_file() const { return (folder_ / "certificate.pem").string(); }
  /// How many connections clients have made, of those whose requests have ended.
  size_t client_connections() const;
  /// What it wrote about itself, for a test that fails.
  std::string complaints() const;

private:
  std::filesystem::path folder_;
  int port_ = 0;
  pid_t child_ = -1;
};

} // namespace gristmill

#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct ssl_ctx_st;

namespace gristmill {

/// What the certificate of a coordinator names, so that a node knows it has found the coordinator
/// and not another node.
inline constexpr const char* coordinator_name = "coordinator";

/// Which end of a connection a certificate is for.
enum class tls_role {
  coordinator,
  node,
};

/// What one process shows and what it trusts: ca.pem, cert.pem and key.pem of a folder, loaded.
struct tls_identity {
  std::shared_ptr<ssl_ctx_st> context;
  /// Name in the certificate.
  std::string name;
  /// Seconds since 1970 at which the certificate ends.
  int64_t not_after = 0;
};

/// Loads the folder for one end. `now`: seconds since 1970. Errors: `invalid_input`, naming the
/// file and what to do: missing, not readable, readable by others, no certificate or key, expired
/// or not yet valid, key of another certificate, certificate of another CA or for the other end.
result<tls_identity> load_tls_folder(
  const std::filesystem::path& folder, tls_role role, int64_t now);

/// Changes whenever one of the three files does. Empty when one cannot be looked at.
std::string tls_folder_stamp(const std::filesystem::path& folder);

} // namespace gristmill

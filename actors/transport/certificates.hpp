#pragma once

#include "messages/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// The private CA of one cluster and what it signs. All keys are P-256, all key files of mode 0600.
/// A folder of a cluster:
///
///     ca/{ca.pem,ca-key.pem}                       stays where it was made
///     coordinator/{ca.pem,cert.pem,key.pem}        --tls of the coordinator
///     nodes/NAME/{ca.pem,cert.pem,key.pem}         --tls of that node
///
/// Certificates name whom they are for (common name and subjectAltName); those of nodes hold for
/// clients alone, so that no node can pass for the coordinator.

inline constexpr int certificate_days = 825;
inline constexpr int ca_days = 3650;
/// Valid from so long before, for machines whose clocks are behind.
inline constexpr int certificate_days_before = 2;

/// Whether a node may be called so: 1 to 64 characters of [A-Za-z0-9_.-], the first a letter or a
/// digit, and not "coordinator". Errors: `invalid_input`.
result<void> check_node_name(std::string_view name);

/// The folder of one process in that of its cluster, `name` being a node or "coordinator".
std::filesystem::path process_folder(const std::filesystem::path& folder, const std::string& name);

struct cluster_init {
  std::vector<std::string> nodes;
  /// Names and addresses that the coordinator's certificate lists besides, for other TLS programs.
  std::vector<std::string> hosts;
  /// Seconds since 1970.
  int64_t now = 0;
};

/// Makes the folder, whole or not at all. Errors: `invalid_input` (a name, or the folder is there
/// and not empty), `io_failed`.
result<void> make_cluster_folder(const std::filesystem::path& folder, const cluster_init& what);

/// Adds a folder for one more node. Errors: as above; `not_found` when `folder` holds no CA.
result<void> add_cluster_node(
  const std::filesystem::path& folder, const std::string& name, int64_t now);

/// New keys and certificates, of the same CA, for these nodes ("coordinator" is one of the names),
/// for all when none is named. Answers who got one. Errors: `not_found` for a name that is not
/// there, with the nearest; `invalid_input` when the CA has expired; `io_failed`.
result<std::vector<std::string>> renew_certificates(
  const std::filesystem::path& folder, const std::vector<std::string>& names, int64_t now);

} // namespace gristmill

#include "actors/transport/certificates.hpp"
#include "actors/transport/tls_folder.hpp"
#include "tests/journal/temporary_folder.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/stat.h>

using namespace gristmill;
namespace fs = std::filesystem;

namespace {

constexpr int64_t now = 1'800'000'000;
constexpr int64_t day = 24 * 3600;

/// A cluster with the nodes a and b.
struct cluster {
  cluster() {
    REQUIRE(make_cluster_folder(base / "c", {{"a", "b"}, {"hub.example.org", "10.0.0.1"}, now}));
  }

  fs::path folder() const { return base / "c"; }
  fs::path node(const char* name) const { return base / "c/nodes" / name; }

  temporary_folder scratch;
  const fs::path& base = scratch.path;
};

std::string text_of(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

/// The failure names the file and something to do.
void check_refused(
  const result<tls_identity>& loaded, const std::string& file, const std::string& remedy) {
  REQUIRE_FALSE(loaded);
  INFO(loaded.error().what);
  CHECK(loaded.error().code == errc::invalid_input);
  CHECK(loaded.error().what.find(file) != std::string::npos);
  CHECK(loaded.error().what.find(remedy) != std::string::npos);
}

} // namespace

TEST_CASE_FIXTURE(cluster, "what init makes is what each end takes") {
  auto hub = load_tls_folder(folder() / "coordinator", tls_role::coordinator, now);
  REQUIRE(hub);
  CHECK(hub->name == "coordinator");
  CHECK(hub->not_after == now + 825 * day);
  auto a = load_tls_folder(node("a"), tls_role::node, now);
  REQUIRE(a);
  CHECK(a->name == "a");
  // Whoever sits at the coordinator's machine may ask for the status with what lies there.
  CHECK(load_tls_folder(folder() / "coordinator", tls_role::node, now));
  for (const auto& entry : fs::recursive_directory_iterator(folder())) {
    struct stat facts {};
    REQUIRE(stat(entry.path().c_str(), &facts) == 0);
    CAPTURE(entry.path().string());
    if (entry.path().filename().string().ends_with("key.pem"))
      CHECK((facts.st_mode & 0777) == 0600);
    if (entry.is_directory())
      CHECK((facts.st_mode & 0777) == 0700);
  }
}

TEST_CASE_FIXTURE(cluster, "a file that is missing, empty or something else is named") {
  for (const auto* name : {"ca.pem", "cert.pem", "key.pem"}) {
    CAPTURE(name);
    const auto file = node("a") / name;
    const auto before = text_of(file);
    fs::remove(file);
    check_refused(load_tls_folder(node("a"), tls_role::node, now), name, "cluster init");
    std::ofstream(file) << "hello\n";
    fs::permissions(file, fs::perms{0600});
    check_refused(load_tls_folder(node("a"), tls_role::node, now), name, "PEM");
    fs::remove(file);
    fs::create_directory(file);
    check_refused(load_tls_folder(node("a"), tls_role::node, now), name, "plain file");
    fs::remove(file);
    std::ofstream(file) << before;
    fs::permissions(file, fs::perms{0600});
  }
  CHECK(load_tls_folder(node("a"), tls_role::node, now));
}

TEST_CASE_FIXTURE(cluster, "a key that others can read is refused") {
  fs::permissions(node("a") / "key.pem", fs::perms{0640});
  check_refused(load_tls_folder(node("a"), tls_role::node, now), "key.pem", "chmod 600");
}

TEST_CASE_FIXTURE(cluster, "the key of another certificate is refused") {
  fs::copy_file(node("b") / "key.pem", node("a") / "key.pem", fs::copy_options::overwrite_existing);
  check_refused(load_tls_folder(node("a"), tls_role::node, now), "key.pem", "another certificate");
}

TEST_CASE_FIXTURE(cluster, "a certificate of another CA is refused") {
  REQUIRE(make_cluster_folder(base / "d", {{"a"}, {}, now}));
  fs::copy_file(
    base / "d/nodes/a/ca.pem", node("a") / "ca.pem", fs::copy_options::overwrite_existing);
  check_refused(
    load_tls_folder(node("a"), tls_role::node, now), "cert.pem", "same `gristmill cluster init`");
}

TEST_CASE_FIXTURE(
  cluster, "a certificate holds from two days before it was made until 825 days after") {
  CHECK(load_tls_folder(node("a"), tls_role::node, now - 2 * day));
  check_refused(
    load_tls_folder(node("a"), tls_role::node, now - 2 * day - 1), "cert.pem", "set the clock");
  CHECK(load_tls_folder(node("a"), tls_role::node, now + 825 * day - 1));
  check_refused(
    load_tls_folder(node("a"), tls_role::node, now + 825 * day), "cert.pem", "cluster renew");
}

TEST_CASE_FIXTURE(
  cluster, "a node's folder does not make a coordinator, nor the folder above a process") {
  check_refused(
    load_tls_folder(node("a"), tls_role::coordinator, now), "cert.pem", "folder `coordinator`");
  check_refused(
    load_tls_folder(folder(), tls_role::coordinator, now), "whole cluster", "coordinator");
}

TEST_CASE_FIXTURE(cluster, "a node that is added belongs to the same cluster") {
  REQUIRE(add_cluster_node(folder(), "c", now + day));
  CHECK(load_tls_folder(node("c"), tls_role::node, now + day)->name == "c");
  CHECK(text_of(node("c") / "ca.pem") == text_of(folder() / "coordinator/ca.pem"));
  auto again = add_cluster_node(folder(), "c", now + day);
  REQUIRE_FALSE(again);
  CHECK(again.error().what.find("cluster renew") != std::string::npos);
}

TEST_CASE_FIXTURE(
  cluster, "renewed certificates are new, hold from now on, and nothing else changes") {
  const auto before = text_of(node("a") / "cert.pem");
  const auto other = text_of(node("b") / "cert.pem");
  auto renewed = renew_certificates(folder(), {"a"}, now + 800 * day);
  REQUIRE(renewed);
  CHECK(*renewed == std::vector<std::string>{"a"});
  CHECK(text_of(node("a") / "cert.pem") != before);
  CHECK(text_of(node("b") / "cert.pem") == other);
  CHECK(load_tls_folder(node("a"), tls_role::node, now + 800 * day)->not_after == now + 1625 * day);
  CHECK(renew_certificates(folder(), {}, now + 800 * day)->size() == 3);
  CHECK(load_tls_folder(folder() / "coordinator", tls_role::coordinator, now + 800 * day));
  auto unknown = renew_certificates(folder(), {"coordinater"}, now);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == errc::not_found);
  CHECK(unknown.error().what.find("`coordinator`") != std::string::npos);
}

TEST_CASE_FIXTURE(cluster, "two CAs in one file are both trusted, so a CA can be replaced") {
  REQUIRE(make_cluster_folder(base / "d", {{"a"}, {}, now}));
  std::ofstream(node("a") / "ca.pem", std::ios::app) << text_of(base / "d/nodes/a/ca.pem");
  CHECK(load_tls_folder(node("a"), tls_role::node, now));
  for (const auto* name : {"cert.pem", "key.pem"})
    fs::copy_file(
      base / "d/nodes/a" / name, node("a") / name, fs::copy_options::overwrite_existing);
  CHECK(load_tls_folder(node("a"), tls_role::node, now));
}

TEST_CASE_FIXTURE(cluster, "a folder that holds something is never written over") {
  const auto before = text_of(folder() / "ca/ca-key.pem");
  auto again = make_cluster_folder(folder(), {{"x"}, {}, now});
  REQUIRE_FALSE(again);
  CHECK(again.error().code == errc::invalid_input);
  CHECK(text_of(folder() / "ca/ca-key.pem") == before);
  fs::create_directory(base / "empty");
  CHECK(make_cluster_folder(base / "empty", {{"x"}, {}, now}));
}

TEST_CASE_FIXTURE(cluster, "a folder may be named with a slash at its end") {
  fs::create_directory(base / "empty");
  for (const auto* name : {"empty/", "new/"}) {
    CAPTURE(name);
    REQUIRE(make_cluster_folder(base / name, {{"x"}, {}, now}));
    CHECK(load_tls_folder(base / name / "nodes/x", tls_role::node, now));
  }
  CHECK_FALSE(fs::exists(base / "empty.new"));
}

TEST_CASE_FIXTURE(cluster, "names that no node may have are refused and nothing is made") {
  for (const auto& name : std::vector<std::string>{
         "", "coordinator", "-a", ".a", "a/b", "a b", "\xc3\xa4", std::string(65, 'a')}) {
    CAPTURE(name);
    auto made = make_cluster_folder(base / "e", {{name}, {}, now});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == errc::invalid_input);
    CHECK_FALSE(fs::exists(base / "e"));
  }
  CHECK_FALSE(make_cluster_folder(base / "e", {{"a", "a"}, {}, now}));
  CHECK_FALSE(make_cluster_folder(base / "e", {{"a"}, {"host,DNS:evil"}, now}));
  CHECK(check_node_name("gpu-01.rack_2"));
}

TEST_CASE_FIXTURE(cluster, "without its CA a cluster gets no more certificates") {
  fs::remove(folder() / "ca/ca-key.pem");
  auto added = add_cluster_node(folder(), "c", now);
  REQUIRE_FALSE(added);
  CHECK(added.error().code == errc::not_found);
  CHECK_FALSE(fs::exists(node("c")));
}

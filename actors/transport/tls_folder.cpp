#include "actors/transport/tls_folder.hpp"

#include "actors/transport/pem.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gristmill {

namespace {

using store_ptr = std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)>;

constexpr const char* file_names[] = {"ca.pem", "cert.pem", "key.pem"};
/// A certificate takes about 1 KiB, a file with several CAs a few.
constexpr off_t file_max = 256 * 1024;

tl::unexpected<failure> bad(const std::filesystem::path& file, const std::string& why) {
  return fail(errc::invalid_input, "--tls " + file.string() + ": " + why);
}

std::string day(int64_t seconds) {
  const time_t time = static_cast<time_t>(seconds);
  tm parts{};
  gmtime_r(&time, &parts);
  char text[32] = {};
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

int64_t seconds_of(const ASN1_TIME* time) {
  tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return timegm(&parts);
}

/// The whole file, from one descriptor, so that what is looked at is what is read.
result<std::string> read_file(const std::filesystem::path& file, bool secret) {
  const int in = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (in < 0) {
    const int why = errno;
    const auto here = file.parent_path();
    std::error_code ignored;
    if (std::filesystem::exists(here / "coordinator" / file.filename(), ignored))
      return bad(here,
        "this is the folder of a whole cluster; give " + (here / "coordinator").string()
          + " to the coordinator and a folder of " + (here / "nodes").string() + " to a node");
    return bad(file,
      std::string(std::strerror(why))
        + "; `gristmill cluster init` makes a folder with ca.pem, cert.pem and key.pem for each "
          "process");
  }
  std::string text;
  struct stat facts {};
  const bool looked = fstat(in, &facts) == 0;
  bool whole = looked && S_ISREG(facts.st_mode) && facts.st_size <= file_max;
  if (whole) {
    text.resize(static_cast<size_t>(facts.st_size));
    size_t have = 0;
    ssize_t got = 0;
    while (have < text.size() && (got = read(in, text.data() + have, text.size() - have)) > 0)
      have += static_cast<size_t>(got);
    whole = have == text.size();
  }
  close(in);
  if (!whole)
    return bad(file, "no plain file of at most 256 KiB");
  if (secret && (facts.st_mode & 077) != 0) {
    char mode[8] = {};
    snprintf(mode, sizeof(mode), "%04o", facts.st_mode & 07777u);
    return bad(file,
      std::string("others can read or change this key (mode ") + mode + "); run `chmod 600 "
        + file.string() + "`, and if others have been here, `gristmill cluster renew`");
  }
  return text;
}

result<void> check_time(
  const std::filesystem::path& file, X509* certificate, int64_t now, const char* remedy) {
  const auto from = seconds_of(X509_get0_notBefore(certificate));
  const auto until = seconds_of(X509_get0_notAfter(certificate));
  if (now < from)
    return bad(file,
      "valid only from " + day(from) + ", and this machine's clock says " + day(now)
        + ": set the clock");
  if (now >= until)
    return bad(file, "expired on " + day(until) + "; " + remedy);
  return {};
}

result<void> check_chain(const std::filesystem::path& folder, X509_STORE* store, X509* certificate,
  tls_role role, int64_t now) {
  std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check{
    X509_STORE_CTX_new(), &X509_STORE_CTX_free};
  if (!check || X509_STORE_CTX_init(check.get(), store, certificate, nullptr) != 1)
    return fail(errc::io_failed, "OpenSSL: no memory");
  X509_STORE_CTX_set_time(check.get(), 0, static_cast<time_t>(now));
  X509_STORE_CTX_set_purpose(
    check.get(), role == tls_role::coordinator ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  if (X509_verify_cert(check.get()) != 1) {
    const int why = X509_STORE_CTX_get_error(check.get());
    if (why == X509_V_ERR_INVALID_PURPOSE)
      return bad(folder / "cert.pem",
        role == tls_role::coordinator ? "the certificate of node \"" + name_of(certificate)
            + "\"; a coordinator takes the folder `coordinator` of the cluster"
                                      : "not made for a node; take a folder of `nodes`");
    if (why == X509_V_ERR_CERT_HAS_EXPIRED || why == X509_V_ERR_CERT_NOT_YET_VALID)
      return bad(folder / "ca.pem",
        "the CA itself is not valid now; make a new one (docs/cluster-trust.md, \"A new CA\")");
    return bad(folder / "cert.pem",
      std::string("not signed by the CA of ca.pem (") + X509_verify_cert_error_string(why)
        + "); take all three files of a folder from the same `gristmill cluster init`");
  }
  if (role == tls_role::coordinator
    && X509_check_host(certificate, coordinator_name, 0, 0, nullptr) != 1)
    return bad(folder / "cert.pem",
      "does not name \"coordinator\"; a coordinator takes the folder `coordinator` of the cluster");
  return {};
}

result<store_ptr> read_cas(const std::filesystem::path& file, const std::string& text) {
  store_ptr store{X509_STORE_new(), &X509_STORE_free};
  auto in = memory_of(text);
  size_t count = 0;
  while (auto one = read_certificate(in.get())) {
    X509_STORE_add_cert(store.get(), one.get());
    ++count;
  }
  ERR_clear_error();
  if (count == 0)
    return bad(file, "holds no certificate in PEM form");
  return store;
}

} // namespace

result<tls_identity> load_tls_folder(
  const std::filesystem::path& folder, tls_role role, int64_t now) {
  std::string texts[3];
  for (int i = 0; i < 3; ++i) {
    auto text = read_file(folder / file_names[i], i == 2);
    if (!text)
      return pass(text);
    texts[i] = std::move(*text);
  }
  ERR_clear_error();
  auto store = read_cas(folder / file_names[0], texts[0]);
  if (!store)
    return pass(store);
  auto certificate_text = memory_of(texts[1]);
  auto certificate = read_certificate(certificate_text.get());
  if (!certificate)
    return bad(folder / file_names[1], "holds no certificate in PEM form");
  auto key_text = memory_of(texts[2]);
  auto key = read_private_key(key_text.get());
  if (!key)
    return bad(folder / file_names[2], "holds no private key in PEM form without a passphrase");
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return bad(folder / file_names[2],
      "the key of another certificate than cert.pem; take all files of a folder from the same "
      "place, or `gristmill cluster renew`");
  auto in_time = check_time(folder / file_names[1], certificate.get(), now,
    "`gristmill cluster renew` makes a new one where the cluster's CA is");
  if (!in_time)
    return pass(in_time);
  auto chained = check_chain(folder, store->get(), certificate.get(), role, now);
  if (!chained)
    return pass(chained);

  tls_identity out;
  out.context = {SSL_CTX_new(TLS_method()), &SSL_CTX_free};
  auto* context = out.context.get();
  if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1
    || SSL_CTX_use_certificate(context, certificate.get()) != 1
    || SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return bad(folder, std::string("OpenSSL: ") + ERR_reason_error_string(ERR_peek_last_error()));
  SSL_CTX_set_cert_store(context, store->release());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // The actor library writes what is left of a buffer, and read buffers are kept only while in use.
  SSL_CTX_set_mode(context,
    SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // Nobody comes back often enough for a shorter handshake, and a ticket could be replayed.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  out.name = name_of(certificate.get());
  out.not_after = seconds_of(X509_get0_notAfter(certificate.get()));
  return out;
}

std::string tls_folder_stamp(const std::filesystem::path& folder) {
  std::string out;
  for (const auto* name : file_names) {
    struct stat facts {};
    if (stat((folder / name).c_str(), &facts) != 0)
      return {};
    for (auto number : {static_cast<int64_t>(facts.st_ino), static_cast<int64_t>(facts.st_size),
           static_cast<int64_t>(facts.st_mtim.tv_sec), static_cast<int64_t>(facts.st_mtim.tv_nsec)})
      out += std::to_string(number) + " ";
  }
  return out;
}

} // namespace gristmill

#include "actors/transport/wire.hpp"

#include "actors/transport/pem.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gristmill {

namespace {

// OpenSSL writes to a socket without asking for no SIGPIPE, which would end the program when a peer
// goes away. So it gets a BIO of ours, which asks.

int socket_of(BIO* bio) {
  return *static_cast<int*>(BIO_get_data(bio));
}

int bio_write(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(socket_of(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int bio_read(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto got = ::recv(socket_of(bio), data, static_cast<size_t>(size), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long bio_control(BIO*, int what, long, void*) {
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* socket_method() {
  static BIO_METHOD* method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gristmill socket");
    BIO_meth_set_write(made, bio_write);
    BIO_meth_set_read(made, bio_read);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return method;
}

std::string alert_text(int reason) {
  switch (reason) {
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    return "the other side does not know the CA of our certificate: both need certificates of the "
           "same `gristmill cluster init`";
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return "the other side asks for a certificate, and none was shown: give --tls FOLDER";
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    return "the other side finds our certificate expired or not yet valid: look at the clocks, or "
           "`gristmill cluster renew`";
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
  case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    return "the other side refuses our certificate";
  case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    return "the other side finds the CA of our certificate to be another one of the same name: "
           "both need certificates of the same `gristmill cluster init`";
  case SSL_R_WRONG_VERSION_NUMBER:
  case SSL_R_HTTP_REQUEST:
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    return "the other side does not speak TLS 1.3: --tls is for both sides or for none";
  default:
    return {};
  }
}

std::string verification_text(long code) {
  switch (code) {
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    return "its certificate is of another CA: both sides need certificates of the same `gristmill "
           "cluster init`";
  case X509_V_ERR_CERT_HAS_EXPIRED:
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return "its certificate is expired or not yet valid: look at the clocks, or `gristmill cluster "
           "renew`";
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_INVALID_PURPOSE:
    return "its certificate is none for a coordinator";
  default:
    return std::string("its certificate does not hold: ") + X509_verify_cert_error_string(code);
  }
}

} // namespace

wire::wire(int socket) : socket_(socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // What waits to be sent to a peer that is gone keeps the socket no longer than this.
  const unsigned unacknowledged_ms = 30'000;
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof(unacknowledged_ms));
}

wire::~wire() {
  SSL_free(ssl_);
  if (owned_)
    ::close(socket_);
}

bool wire::start_tls(ssl_ctx_st* context, bool server, const std::string& server_name) {
  ssl_ = SSL_new(context);
  auto* bio = ssl_ ? BIO_new(socket_method()) : nullptr;
  if (!bio)
    return false;
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  if (server) {
    SSL_set_accept_state(ssl_);
    return true;
  }
  SSL_set_connect_state(ssl_);
  return SSL_set1_host(ssl_, server_name.c_str()) == 1;
}

wire::progress wire::outcome(int returned, bool writing) {
  switch (SSL_get_error(ssl_, returned)) {
  case SSL_ERROR_WANT_READ:
    return {state::want_read, 0};
  case SSL_ERROR_WANT_WRITE:
    return {state::want_write, 0};
  case SSL_ERROR_ZERO_RETURN:
    return {state::ended, 0};
  case SSL_ERROR_SSL: {
    const auto error = ERR_peek_last_error();
    const int reason = ERR_GET_REASON(error);
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
      return {state::ended, 0};
    tls_refused_ = true;
    speaks_no_tls_ = reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST;
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
      failure_ = verification_text(SSL_get_verify_result(ssl_));
    else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
      failure_ = "it shows no certificate";
    else if (failure_ = alert_text(reason); failure_.empty())
      failure_ = std::string("TLS: ") + ERR_reason_error_string(error);
    return {state::failed, 0};
  }
  default:
    failure_ = writing ? "the connection broke while writing" : "the connection broke";
    return {state::failed, 0};
  }
}

wire::progress wire::handshake() {
  if (!ssl_)
    return {state::done, 0};
  ERR_clear_error();
  const int returned = SSL_do_handshake(ssl_);
  return returned == 1 ? progress{state::done, 0} : outcome(returned, false);
}

wire::progress wire::read(void* buffer, size_t size) {
  if (ssl_) {
    ERR_clear_error();
    size_t got = 0;
    const int returned = SSL_read_ex(ssl_, buffer, size, &got);
    return returned == 1 ? progress{state::done, got} : outcome(returned, false);
  }
  const auto got = ::recv(socket_, buffer, size, 0);
  if (got > 0)
    return {state::done, static_cast<size_t>(got)};
  if (got == 0)
    return {state::ended, 0};
  if (errno == EAGAIN || errno == EINTR)
    return {state::want_read, 0};
  failure_ = std::strerror(errno);
  return {state::failed, 0};
}

wire::progress wire::write(const void* buffer, size_t size) {
  if (ssl_) {
    ERR_clear_error();
    size_t sent = 0;
    const int returned = SSL_write_ex(ssl_, buffer, size, &sent);
    return returned == 1 ? progress{state::done, sent} : outcome(returned, true);
  }
  const auto sent = ::send(socket_, buffer, size, MSG_NOSIGNAL);
  if (sent >= 0)
    return {state::done, static_cast<size_t>(sent)};
  if (errno == EAGAIN || errno == EINTR)
    return {state::want_write, 0};
  failure_ = std::strerror(errno);
  return {state::failed, 0};
}

size_t wire::waiting() const {
  return ssl_ ? static_cast<size_t>(std::max(0, SSL_pending(ssl_))) : 0;
}

std::string wire::peer_name() const {
  const x509_ptr certificate{ssl_ ? SSL_get1_peer_certificate(ssl_) : nullptr, &X509_free};
  return certificate ? name_of(certificate.get()) : std::string();
}

void wire::shut() {
  std::lock_guard lock{mutex_};
  if (gone_ || shut_)
    return;
  shut_ = true;
  ::shutdown(socket_, SHUT_RDWR);
}

int wire::give_socket_away() {
  std::lock_guard lock{mutex_};
  owned_ = false;
  return socket_;
}

void wire::set(bool wire::*flag) {
  {
    std::lock_guard lock{mutex_};
    this->*flag = true;
  }
  changed_.notify_all();
}

void wire::gone() {
  set(&wire::gone_);
}

bool wire::is_gone() const {
  std::lock_guard lock{mutex_};
  return gone_;
}

bool wire::was_heard() const {
  std::lock_guard lock{mutex_};
  return heard_;
}

bool wire::wait_gone(long milliseconds) const {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, std::chrono::milliseconds{milliseconds}, [this] { return gone_; });
}

} // namespace gristmill

#include "tests/llm/transport/nginx.hpp"

#include "tests/llm/transport/test_server.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <netinet/in.h>
#include <poll.h>
#include <set>
#include <spawn.h>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace gristmill {

namespace {

namespace fs = std::filesystem;

/// Debian keeps nginx where only root looks.
std::string program(std::string_view name) {
  for (const std::string_view folder :
    {"/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"})
    if (const auto path = fmt::format("{}/{}", folder, name); ::access(path.c_str(), X_OK) == 0)
      return path;
  return {};
}

pid_t start(std::vector<std::string> words, const fs::path& output) {
  std::vector<char*> arguments;
  for (auto& each : words)
    arguments.push_back(each.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(
    &files, STDERR_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failed =
    ::posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  return failed ? -1 : child;
}

int end_of(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

std::string content(const fs::path& file) {
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

bool listens(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  const bool yes = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return yes;
}

} // namespace

std::optional<std::string> nginx::missing() {
  for (const char* name : {"nginx", "openssl"})
    if (program(name).empty())
      return name;
  return std::nullopt;
}

nginx::nginx(int upstream_port, speaks what) {
  auto name = (fs::temp_directory_path() / "gristmill-nginx-XXXXXX").string();
  folder_ = ::mkdtemp(name.data());
  const auto errors = folder_ / "errors.log";
  const auto key = (folder_ / "key.pem").string();
  if (end_of(start(
        {program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt",
          "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=gristmill test",
          "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", ca_file()},
        errors))
    != 0)
    throw std::runtime_error("openssl made no certificate: " + content(errors));
  port_ = free_port();
  std::ofstream(folder_ / "nginx.conf") << fmt::format(R"(
daemon off;
master_process off;
pid {0}/nginx.pid;
error_log {0}/errors.log;
events {{ worker_connections 4096; }}
http {{
  log_format connections '$connection';
  access_log {0}/access.log connections;
  client_body_temp_path {0}/body;
  proxy_temp_path {0}/proxy;
  fastcgi_temp_path {0}/fastcgi;
  scgi_temp_path {0}/scgi;
  uwsgi_temp_path {0}/uwsgi;
  server {{
    listen 127.0.0.1:{1} ssl{2};
    ssl_certificate {0}/certificate.pem;
    ssl_certificate_key {0}/key.pem;
    location / {{
      proxy_pass http://127.0.0.1:{3};
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 20s;
    }}
  }}
}}
)",
    folder_.string(), port_, what == speaks::http2 ? " http2" : "", upstream_port);
  child_ = start({program("nginx"), "-p", folder_.string(), "-e", errors.string(), "-c",
                   (folder_ / "nginx.conf").string()},
    errors);
  for (int i = 0; i < 1000 && !listens(port_); ++i) {
    int status = 0;
    if (child_ < 0 || ::waitpid(child_, &status, WNOHANG) == child_)
      throw std::runtime_error("nginx does not start: " + content(errors));
    ::poll(nullptr, 0, 10);
  }
}

nginx::~nginx() {
  if (child_ > 0) {
    ::kill(child_, SIGTERM);
    end_of(child_);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string nginx::url(const std::string& path) const {
  return fmt::format("https://127.0.0.1:{}{}", port_, path);
}

size_t nginx::client_connections() const {
  std::ifstream log(folder_ / "access.log");
  std::set<std::string> seen;
  for (std::string line; std::getline(log, line);)
    seen.insert(line);
  return seen.size();
}

std::string nginx::complaints() const {
  return content(folder_ / "errors.log");
}

} // namespace gristmill

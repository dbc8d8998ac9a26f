#include "actors/transport/cluster_address.hpp"
#include "actors/transport/half_open.hpp"
#include "actors/transport/join_talk.hpp"
#include "actors/transport/loopback_owner.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace gristmill;
using namespace std::chrono_literals;

namespace {

const join_identity hub{1, "0.9.0", "hub"};
const join_identity node{1, "0.9.0", "node"};
const std::string nonce(32, 'a');

/// What comes of the last byte.
template <class Talk>
talk_step feed(Talk& talk, std::string_view text) {
  talk_step last;
  for (char byte : text)
    last = talk.feed(byte);
  return last;
}

} // namespace

TEST_CASE("a process of the same version is let in after it has answered the challenge") {
  door_talk door{hub, nonce};
  guest_talk guest{node};
  auto challenge = feed(door, guest.first());
  REQUIRE(challenge.what == talk_step::next::say);
  CHECK(door.theirs().process == "node");
  auto answer = feed(guest, challenge.text);
  REQUIRE(answer.what == talk_step::next::say);
  auto welcome = feed(door, answer.text);
  REQUIRE(welcome.what == talk_step::next::admit);
  CHECK(feed(guest, welcome.text).what == talk_step::next::admit);
}

TEST_CASE("another version or another protocol is turned away by a text that names both") {
  for (const auto& other : {join_identity{1, "0.8.0", "node"}, join_identity{7, "0.9.0", "node"}}) {
    door_talk door{hub, nonce};
    guest_talk guest{other};
    auto refused = feed(door, guest.first());
    REQUIRE(refused.what == talk_step::next::refuse);
    auto heard = feed(guest, refused.text);
    REQUIRE(heard.what == talk_step::next::refuse);
    CHECK(heard.code == errc::refused);
    CHECK(heard.reason.find("0.9.0 (cluster protocol 1)") != std::string::npos);
    CHECK(heard.reason.find(
            other.version + " (cluster protocol " + std::to_string(other.protocol) + ")")
      != std::string::npos);
  }
}

TEST_CASE("the answer of an earlier session does not fit") {
  door_talk first{hub, nonce};
  door_talk second{hub, std::string(32, 'b')};
  guest_talk guest{node};
  auto answer = feed(guest, feed(first, guest.first()).text);
  feed(second, guest.first());
  auto refused = feed(second, answer.text);
  CHECK(refused.what == talk_step::next::refuse);
}

TEST_CASE("bytes of something else are refused at the first one, and told nothing") {
  door_talk door{hub, nonce};
  auto refused = door.feed('G');
  CHECK(refused.what == talk_step::next::refuse);
  CHECK(refused.text.empty());
  // But a TLS client is told, in a way that it understands.
  door_talk other{hub, nonce};
  CHECK(other.feed('\x16').text.starts_with("refused "));
}

TEST_CASE("a line without an end is refused") {
  door_talk door{hub, nonce};
  feed(door, "gristmill-join 1 ");
  talk_step step;
  for (int i = 0; i < 600 && step.what == talk_step::next::more; ++i)
    step = door.feed('9');
  CHECK(step.what == talk_step::next::refuse);
}

TEST_CASE("incomplete and hostile lines are refused") {
  for (const auto* line : {"gristmill-join\n", "gristmill-join 1 0.9.0\n",
         "gristmill-join x 0.9.0 n\n", "gristmill-join 1 0.9.0 n more\n", "gristmill-join 1  n\n",
         "gristmill-join 99999999999999999999 0.9.0 n\n", "gristmill-join 1 0.9.0 \x1b[31m\n"}) {
    CAPTURE(line);
    door_talk door{hub, nonce};
    CHECK(feed(door, line).what == talk_step::next::refuse);
  }
}

TEST_CASE("who connects without TLS to a port with TLS is told so") {
  guest_talk guest{node};
  guest.feed('\x15');
  auto step = guest.feed('\x03');
  REQUIRE(step.what == talk_step::next::refuse);
  CHECK(step.reason.find("--tls FOLDER") != std::string::npos);
}

TEST_CASE("a welcome without a challenge is no coordinator's") {
  guest_talk guest{node};
  CHECK(feed(guest, "welcome\n").what == talk_step::next::refuse);
}

TEST_CASE("addresses are read with their brackets, and the flag is named when they do not hold") {
  CHECK(read_cluster_address("--listen", "127.0.0.1:0", true)->port == 0);
  CHECK(read_cluster_address("--join", "[::1]:4711", false)->host == "::1");
  CHECK(to_string(cluster_address{"::1", 4711}) == "[::1]:4711");
  for (const auto* text : {"", "4711", ":4711", "host:", "host:0", "host:65536", "host:-1",
         "host:4 7", "::1:4711", "[::1]", "ho st:1", "a/b:1"}) {
    CAPTURE(text);
    auto read = read_cluster_address("--join", text, false);
    REQUIRE_FALSE(read);
    CHECK(read.error().what.find("--join ") == 0);
  }
  CHECK(is_loopback({"127.8.9.1", 1}));
  CHECK(is_loopback({"::1", 1}));
  CHECK(is_loopback({"localhost", 1}));
  CHECK_FALSE(is_loopback({"0.0.0.0", 1}));
  CHECK_FALSE(is_loopback({"128.0.0.1", 1}));
  CHECK_FALSE(is_loopback({"::", 1}));
  CHECK_FALSE(is_loopback({"127.0.0.1.example.org", 1}));
}

TEST_CASE("the half open one that goes is the oldest of the address that has most") {
  half_open some{3, 5s};
  const half_open::instant start{};
  CHECK_FALSE(some.add(1, "honest", start));
  CHECK_FALSE(some.add(2, "loud", start + 1s));
  CHECK_FALSE(some.add(3, "loud", start + 2s));
  CHECK(some.add(4, "loud", start + 3s) == 2);
  CHECK(some.add(5, "loud", start + 3s) == 3);
  CHECK(some.size() == 3);
  CHECK(*some.next_deadline() == start + 5s);
  CHECK(some.expired(start + 4s).empty());
  CHECK(some.expired(start + 5s) == std::vector<uint64_t>{1});
  some.remove(4);
  CHECK(some.expired(start + 60s) == std::vector<uint64_t>{5});
  CHECK_FALSE(some.next_deadline());
}

TEST_CASE("the table of connections says whose process has the other end") {
  const std::string table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                            "retrnsmt   uid  timeout inode\n"
                            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 "
                            "00000000     0        0 11 1\n"
                            "   1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 "
                            "00000000  1000        0 12 1\n"
                            "   2: 0100007F:9C41 0100007F:1F90 06 00000000:00000000 00:00000000 "
                            "00000000     0        0 0 3\n"
                            "   3: 0100007F:9C42 0100007F:1F90 01 00000000:00000000 00:00000000 "
                            "00000000     0        0 0 1\n";
  CHECK(user_in_table(table, "0100007F:9C40", "0100007F:1F90") == 1000);
  // Left behind by a process that is gone: nobody's, not root's.
  CHECK_FALSE(user_in_table(table, "0100007F:9C41", "0100007F:1F90"));
  CHECK_FALSE(user_in_table(table, "0100007F:9C42", "0100007F:1F90"));
  CHECK_FALSE(user_in_table(table, "0100007F:9C43", "0100007F:1F90"));
  CHECK_FALSE(user_in_table("", "0100007F:9C43", "0100007F:1F90"));
  sockaddr_storage end{};
  auto& four = reinterpret_cast<sockaddr_in&>(end);
  four.sin_family = AF_INET;
  four.sin_port = htons(8080);
  inet_pton(AF_INET, "127.0.0.1", &four.sin_addr);
  CHECK(table_name_of(end, false) == "0100007F:1F90");
  CHECK(table_name_of(end, true) == "0000000000000000FFFF00000100007F:1F90");
}

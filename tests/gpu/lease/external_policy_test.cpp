#include "gpu/lease/external_policy.hpp"

#include "gpu/lease/external_messages.hpp"
#include "gpu/lease/policy_text.hpp"
#include "tests/gpu/lease/policy_support.hpp"
#include "tests/support/closed_queue.hpp"

#include <cstdlib>
#include <fmt/format.h>

using namespace gristmill;
using namespace gristmill::test;
using namespace std::chrono_literals;

namespace {

/// Fast machines answer in microseconds; the tests must also pass on one that is busy.
std::unique_ptr<lease_policy> external(const std::string& command, nanoseconds timeout = 30s) {
  return make_external_policy({command, timeout, 3});
}

std::string source_folder() {
  const char* folder = std::getenv("GRISTMILL_SOURCE");
  return folder == nullptr ? "." : folder;
}

bool mentions(const std::vector<std::string>& failures, const std::string& part) {
  for (const auto& f : failures)
    if (f.find(part) != std::string::npos)
      return true;
  return false;
}

/// A shell policy that greets and then answers each question with what the text makes of it; `$id`
/// is the number of the question.
std::string shell_policy(const std::string& on_pick) {
  return "while read -r line; do case \"$line\" in "
         "*hello*) echo '{\"id\":0}';; "
         "*'\"pick\"'*) id=${line#*\\\"id\\\":}; id=${id%%,*}; "
    + on_pick + ";; esac; done";
}

} // namespace

TEST_CASE("the messages to a policy process are JSON objects on one line") {
  auto w = make_waiter(7, "soft\"max\n", "agent\\1\xff", 2, 10s, 3);
  w.arrived = 5ns;
  CHECK(external_request(w)
    == R"({"event":"request","ticket":7,"class":"timing","problem":"soft\"max\u000a",)"
       R"("agent":"agent\\1)"
       "\xef\xbf\xbd"
       R"(","weight":3,"need":2,"estimate_ns":10000000000,"cap_ns":120000000000,)"
       R"("deadline_ns":86400000000000,"arrived_ns":5})");
  CHECK(external_hello() == R"({"event":"hello","version":1,"id":0})");
  CHECK(external_cancel(7) == R"({"event":"cancel","ticket":7})");
  CHECK(external_grant(7, 3, 9ns) == R"({"event":"grant","ticket":7,"gpu":3,"now_ns":9})");
  CHECK(external_release({7, 3, 4ns}, "done", 9ns)
    == R"({"event":"release","ticket":7,"gpu":3,"held_ns":4,"reason":"done","now_ns":9})");
  CHECK(external_pick(2, {3, 0b101}, 9ns)
    == R"({"event":"pick","id":2,"gpu":3,"fits":[0,2],"now_ns":9})");
  CHECK(external_load("a\"b") == R"({"event":"load","state":"a\"b"})");
  CHECK(external_save(4) == R"({"event":"save","id":4})");
}

TEST_CASE("text in a message is valid UTF-8 whatever it was made of") {
  CHECK(json_quoted("grüß 漢 😀") == "\"grüß 漢 😀\"");
  for (const char* bad : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    CHECK(json_quoted(bad).find("\xef\xbf\xbd") != std::string::npos);
}

TEST_CASE("an answer is read as JSON, spaces and order of the keys being free") {
  CHECK(*parse_external_answer(R"({"id":1,"ticket":7})") == external_answer{1, 7, std::nullopt});
  CHECK(*parse_external_answer(" { \"ticket\" : null , \"id\" : 12 } \r")
    == external_answer{12, std::nullopt, std::nullopt});
  CHECK(*parse_external_answer(R"({"id":0})") == external_answer{0, std::nullopt, std::nullopt});
  CHECK(*parse_external_answer(R"({"id":1,"state":"a\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00"})")
    == external_answer{1, std::nullopt, "a\"\\/\b\f\n\r\tä😀"});
  CHECK(parse_external_answer(R"({"id":18446744073709551615})")->id == UINT64_MAX);
}

TEST_CASE("an answer that is anything else is refused") {
  for (const char* line :
    {"", "x", "1", "[]", "{}", "{\"id\"}", "{\"id\":}", "{\"id\":1", "{\"id\":1}}", "{\"id\":1,}",
      "{\"id\":-1}", "{\"id\":1.0}", "{\"id\":01}", "{\"id\":\"1\"}", "{\"id\":1,\"id\":1}",
      "{\"ticket\":1}", "{\"id\":1,\"ticket\":true}", "{\"id\":1,\"tickets\":1}",
      "{\"id\":1,\"state\":1}", "{\"id\":18446744073709551616}", "{\"id\":1,\"state\":\"\\x\"}",
      "{\"id\":1,\"state\":\"\\ud800\"}", "{\"id\":1,\"state\":\"\\udc00\"}",
      "{\"id\":1,\"state\":\"\\u12\"}", "{\"id\":1,\"state\":\"a\nb\"}", "{\"id\":1,\"state\":\"a",
      "{\"id\":1,\"state\":\"\\", "{\"id\":{\"id\":1}}", "{\"id\":1,\"ticket\":1,\"ticket\":2}"}) {
    CAPTURE(std::string{line});
    auto answer = parse_external_answer(line);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == errc::invalid_input);
  }
  CHECK_FALSE(parse_external_answer(std::string((size_t{1} << 20) + 1, ' ')));
  CHECK_FALSE(parse_external_answer(std::string(100'000, '{')));
}

TEST_CASE("the Python example decides: the longest wait first, profiles last") {
  auto command = "python3 '" + source_folder() + "/examples/lease_policy/longest_wait.py'";
  CHECK(policy("external(cmd=" + quoted_policy_value(command) + ")")->name() == "external");
  // With time enough to start on a machine that is busy.
  auto p = external(command, 60s);
  p->on_request(make_waiter(1, "p", "a", 2));
  p->on_request(make_waiter(2, "p", "a", 1));
  auto profile = make_waiter(3, "p", "a", 1);
  profile.what = lease_class::profile;
  p->on_request(profile);
  p->on_request(make_waiter(4, "p", "a", 1));
  p->on_request(make_waiter(5, "p", "a", 1));
  p->on_cancel(4);
  std::vector<uint64_t> order;
  for (int i = 0; i < 3; ++i)
    order.push_back(serve(*p, 10s));
  CHECK(order == std::vector<uint64_t>{2, 5, 3});
  CHECK(p->take_failures().empty());
  CHECK_FALSE(p->pick({0, fits(1)}, 0ns));
  CHECK(p->pick({0, fits(2)}, 0ns) == 1u);
  CHECK(p->save() == "external 1 -\n");
  CHECK(p->clone() == nullptr);
}

TEST_CASE("a process that names somebody who does not wait or fit is overruled by fifo") {
  auto p = external(shell_policy("echo '{\"id\":'$id',\"ticket\":2}'"));
  p->on_request(make_waiter(1, "p", "a", 1));
  CHECK(serve(*p, 1s) == 1);
  CHECK(mentions(p->take_failures(), "names ticket 2, which does not wait"));
  p->on_request(make_waiter(2, "p", "a", 2));
  p->on_request(make_waiter(3, "p", "a", 1));
  CHECK(serve(*p, 1s) == 3);
  CHECK(mentions(p->take_failures(), "this GPU does not fit"));
  CHECK(serve(*p, 1s, 2) == 2);
  CHECK(p->take_failures().empty());
}

TEST_CASE("a process that names nobody does not leave a GPU idle") {
  auto p = external(shell_policy("echo '{\"id\":'$id',\"ticket\":null}'"));
  p->on_request(make_waiter(1, "p", "a"));
  CHECK(serve(*p, 1s) == 1);
  CHECK(mentions(p->take_failures(), "names nobody, although ticket 1 waits"));
}

TEST_CASE("a silent process costs no more than the timeout, and fifo decides") {
  auto p = external(shell_policy(":"), 20ms);
  bool late = false;
  bool again = false;
  // Until the shell has started, which takes as long as it takes, picks do not wait at all.
  for (uint64_t ticket = 1; ticket <= 1'000'000 && !again; ++ticket) {
    p->on_request(make_waiter(ticket, "p", "a"));
    REQUIRE(serve(*p, 1s) == ticket);
    auto failures = p->take_failures();
    late = late || mentions(failures, "no answer within 20 ms");
    again = mentions(failures, "missed 10 answers in a row; restart 1 of 3");
  }
  CHECK(late);
  CHECK(again);
  CHECK(p->take_failures().empty());
}

TEST_CASE("a process that dies is started again three times, and then fifo decides alone") {
  auto p = external("exit 0", 20s);
  std::vector<std::string> failures;
  for (uint64_t ticket = 1; ticket <= 20; ++ticket) {
    p->on_request(make_waiter(ticket, "p", "a"));
    CHECK(serve(*p, 1s) == ticket);
    for (auto& f : p->take_failures())
      failures.push_back(f);
  }
  CHECK(failures.size() == 4);
  CHECK(mentions(failures, "restart 3 of 3"));
  CHECK(mentions(failures, "fifo decides from now on"));
}

TEST_CASE("a process that is started again is told what waits and what runs") {
  // Answers the number of requests that it was told of, but ends at the second question.
  auto p =
    external("n=0; asked=0; while read -r line; do case \"$line\" in "
             "*hello*) echo '{\"id\":0}';; *'\"request\"'*) n=$((n+1));; "
             "*'\"pick\"'*) asked=$((asked+1)); [ $asked = 2 ] && exit 1; "
             "id=${line#*\\\"id\\\":}; id=${id%%,*}; echo '{\"id\":'$id',\"ticket\":'$n'}';; "
             "esac; done");
  for (uint64_t ticket = 1; ticket <= 3; ++ticket)
    p->on_request(make_waiter(ticket, "p", "a"));
  auto ticket = *p->pick({0, fits(1)}, 0ns);
  CHECK(ticket == 3);
  p->on_grant(3, 0, 0ns);
  CHECK(p->pick({1, fits(1)}, 0ns) == 1u); // It ends: fifo.
  CHECK(mentions(p->take_failures(), "ended; restart 1 of 3"));
  p->on_request(make_waiter(4, "p", "a"));
  // The new one knows of 3 (running), 1, 2 and 4.
  CHECK(p->pick({1, fits(1)}, 0ns) == 4u);
  CHECK(p->take_failures().empty());
}

TEST_CASE("a process that writes nonsense, too much, or answers from nowhere is started again") {
  for (const char* on_pick : {"echo hello", "echo '{\"id\":999}'", "echo '[1]'",
         "head -c 2000000 /dev/zero | tr '\\0' x 2>/dev/null"}) {
    CAPTURE(std::string{on_pick});
    auto p = external(shell_policy(on_pick));
    p->on_request(make_waiter(1, "p", "a"));
    CHECK(serve(*p, 1s) == 1);
    CHECK(mentions(p->take_failures(), "restart 1 of 3"));
  }
}

TEST_CASE("a process that does not read is started again, and nothing blocks") {
  auto p = external("echo '{\"id\":0}'; exec sleep 1000", 20ms);
  const std::string name(100'000, 'x');
  for (uint64_t ticket = 1; ticket <= 200; ++ticket)
    p->on_request(make_waiter(ticket, name, "a"));
  CHECK(serve(*p, 1s) == 1);
  CHECK(mentions(p->take_failures(), "does not read"));
}

TEST_CASE("what a policy process wants to be kept is saved, and given back at its start") {
  auto command = "s=none; while read -r line; do case \"$line\" in *hello*) echo '{\"id\":0}';; "
                 "*'\"load\"'*) s=loaded;; *'\"save\"'*) id=${line#*\\\"id\\\":}; id=${id%%\\}*}; "
                 "echo '{\"id\":'$id',\"state\":\"'$s'\"}';; esac; done";
  auto p = external(command);
  auto saved = p->save();
  CHECK(saved == "external 1 6e6f6e65\n");
  auto next = external(command);
  REQUIRE(next->load(saved));
  CHECK(next->save() == "external 1 6c6f61646564\n");
  for (const char* text : {"", "external 1", "external 2 -\n", "external 1 6\n",
         "external 1 -\nx\n", "external 1 - -\n", "fifo 1\n"})
    CHECK(external(command)->load(text).error().code == errc::invalid_input);
}

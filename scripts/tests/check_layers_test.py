"""Plants each violation that scripts/check-layers promises to refuse, and sees it refused."""

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "check-layers"
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check_layers", str(PROGRAM))
spec = importlib.util.spec_from_loader("check_layers", loader)
check_layers = importlib.util.module_from_spec(spec)
loader.exec_module(check_layers)

# One header a folder, so that every planted include has a target.
TARGETS = [
    "messages/lease.hpp", "messages/caf_seam.hpp", "messages/wire.hpp", "tensors/dtype.hpp",
    "protocol/plan.hpp", "scoring/score.hpp", "planning/portfolio.hpp", "journal/event_log.hpp",
    "gpu/lease/table.hpp", "gpu/mock/device.hpp", "gpu/mock/ptx/ptx.hpp", "llm/transport.hpp",
    "kernels/builtin.hpp", "report/table.hpp", "actors/interfaces.hpp", "simulation/engine.hpp",
    "cli/run.hpp", "tests/support/virtual_time.hpp",
]


class Scratch(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        for name in TARGETS:
            self.write(name, "#pragma once\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def rules(self, name, text):
        """The rules that a file of this name and text breaks."""
        if name.endswith(".hpp") and "#pragma once" not in text:
            text = "#pragma once\n" + text
        self.write(name, text)
        return sorted({rule for _, rule, _ in check_layers.check_file(self.root, name)})

    def refused(self, name, text, rule):
        self.assertEqual(self.rules(name, text), [rule], f"{name}: {text}")

    def allowed(self, name, text):
        self.assertEqual(self.rules(name, text), [], f"{name}: {text}")


class Layers(Scratch):
    def test_a_folder_includes_what_stands_to_its_right(self):
        for name, target in [
            ("cli/run.cpp", "simulation/engine.hpp"), ("cli/run.cpp", "actors/interfaces.hpp"),
            ("simulation/replay.cpp", "actors/interfaces.hpp"), ("actors/gpu.cpp", "gpu/lease/table.hpp"),
            ("actors/gpu.cpp", "llm/transport.hpp"), ("report/html.cpp", "journal/event_log.hpp"),
            ("gpu/children/judge.cpp", "scoring/score.hpp"), ("scoring/score.cpp", "tensors/dtype.hpp"),
            ("tensors/dtype.cpp", "messages/lease.hpp"), ("main.cpp", "cli/run.hpp"),
        ]:
            self.allowed(name, f'#include "{target}"\n')

    def test_an_include_against_the_arrow_is_refused(self):
        for name, target in [
            ("messages/lease.cpp", "tensors/dtype.hpp"), ("tensors/dtype.cpp", "protocol/plan.hpp"),
            ("scoring/score.cpp", "gpu/mock/device.hpp"), ("planning/attempt.cpp", "actors/interfaces.hpp"),
            ("gpu/mock/device.cpp", "actors/interfaces.hpp"), ("actors/worker.cpp", "cli/run.hpp"),
            ("actors/worker.cpp", "simulation/engine.hpp"), ("report/html.cpp", "cli/run.hpp"),
        ]:
            self.refused(name, f'#include "{target}"\n', "layer")

    def test_neighbours_do_not_know_each_other(self):
        for name, target in [
            ("scoring/score.cpp", "protocol/plan.hpp"), ("journal/log.cpp", "planning/portfolio.hpp"),
            ("gpu/mock/device.cpp", "kernels/builtin.hpp"), ("report/html.cpp", "gpu/lease/table.hpp"),
            ("llm/openai.cpp", "report/table.hpp"),
        ]:
            self.refused(name, f'#include "{target}"\n', "layer")

    def test_the_lease_table_includes_only_messages(self):
        self.allowed("gpu/lease/table.cpp", '#include "messages/lease.hpp"\n#include "gpu/lease/table.hpp"\n')
        for target in ["tensors/dtype.hpp", "planning/portfolio.hpp", "gpu/mock/device.hpp"]:
            self.refused("gpu/lease/table.cpp", f'#include "{target}"\n', "layer")

    def test_the_interpreter_is_a_library_of_its_own(self):
        self.refused("gpu/mock/ptx/run.cpp", '#include "gpu/mock/device.hpp"\n', "layer")

    def test_kernels_know_problems_and_tensors_only(self):
        self.allowed("kernels/silu.cpp", '#include "protocol/plan.hpp"\n#include "tensors/dtype.hpp"\n')
        self.allowed("kernels/oracle/main.cpp", '#include "kernels/builtin.hpp"\n')
        for target in ["journal/event_log.hpp", "scoring/score.hpp"]:
            self.refused("kernels/silu.cpp", f'#include "{target}"\n', "layer")
            self.refused("kernels/oracle/main.cpp", f'#include "{target}"\n', "layer")

    def test_the_core_engine_works_without_the_actor_library(self):
        self.allowed("simulation/core/engine.cpp", '#include "gpu/lease/table.hpp"\n')
        self.refused("simulation/core/engine.cpp", '#include "actors/interfaces.hpp"\n', "layer")

    def test_nobody_includes_a_test(self):
        self.refused("actors/worker.cpp", '#include "tests/support/virtual_time.hpp"\n', "layer")
        self.allowed("tests/actors/worker_test.cpp", '#include "tests/support/virtual_time.hpp"\n')

    def test_an_include_path_starts_at_the_root_of_the_tree(self):
        self.refused("scoring/score.cpp", '#include "score.hpp"\n', "include-path")
        self.refused("scoring/score.cpp", '#include "../messages/lease.hpp"\n', "include-path")
        self.refused("scoring/score.cpp", "#include <messages/lease.hpp>\n", "include-path")

    def test_an_include_in_a_comment_is_none(self):
        self.allowed("messages/lease.cpp", '// #include "tensors/dtype.hpp"\n/*\n#include "cli/run.hpp"\n*/\n')


class Libraries(Scratch):
    def test_each_library_stands_where_the_table_says(self):
        for name, include in [
            ("protocol/json.cpp", "nlohmann/json.hpp"), ("protocol/toml.cpp", "toml++/toml.h"),
            ("journal/log.cpp", "SQLiteCpp/SQLiteCpp.h"), ("journal/hash.cpp", "openssl/evp.h"),
            ("actors/worker.cpp", "caf/all.hpp"), ("actors/worker.cpp", "spdlog/spdlog.h"),
            ("cli/run.cpp", "CLI/CLI.hpp"), ("messages/result.hpp", "tl/expected.hpp"),
            ("scoring/score.cpp", "fmt/format.h"), ("gpu/cuda/driver.cpp", "cuda.h"),
            ("tests/x_test.cpp", "doctest/doctest.h"), ("gpu/children/jail.cpp", "sys/resource.h"),
        ]:
            self.allowed(name, f"#include <{include}>\n")

    def test_a_library_elsewhere_is_refused(self):
        for name, include in [
            ("scoring/score.cpp", "nlohmann/json.hpp"), ("planning/attempt.cpp", "spdlog/spdlog.h"),
            ("tensors/file.cpp", "sqlite3.h"), ("gpu/mock/device.cpp", "cuda.h"),
            ("kernels/silu.cpp", "CLI/CLI.hpp"), ("actors/worker.cpp", "doctest/doctest.h"),
            ("scoring/score.cpp", "tl/expected.hpp"), ("scoring/score.cpp", "boost/asio.hpp"),
            ("simulation/core/engine.cpp", "toml++/toml.h"),
        ]:
            self.refused(name, f"#include <{include}>\n", "library")

    def test_the_actor_library_is_named_in_actors_and_in_two_kinds_of_message_header(self):
        for name in ["messages/caf_seam.hpp", "messages/inspect_lease.hpp", "actors/seam.cpp"]:
            self.allowed(name, "#include <caf/all.hpp>\n")
        for name in ["messages/lease.hpp", "messages/wire.hpp", "gpu/mock/device.cpp", "cli/run.cpp",
                     "planning/portfolio.hpp", "simulation/core/engine.cpp"]:
            self.refused(name, "#include <caf/all.hpp>\n", "library")


class Messages(Scratch):
    def test_a_message_carries_no_floating_point_number_and_no_optional(self):
        for member in ["double x = 0;", "float x = 0;", "std::optional<int> x;", "std::variant<int> x;"]:
            self.refused("messages/lease.hpp", f"struct lease {{ {member} }};\n", "message")

    def test_the_words_may_stand_in_comments_and_in_the_files_that_replace_them(self):
        self.allowed("messages/lease.hpp", "/// Not a double, not a std::optional.\nstruct lease {};\n")
        self.allowed("messages/wire.hpp", "struct f64 { f64(double value); };\n")
        self.allowed("scoring/score.hpp", "double score(double t);\n")


class Bans(Scratch):
    def test_nobody_waits_for_real_time(self):
        for text in ["std::this_thread::sleep_for(1s);", "std::this_thread::sleep_until(t);",
                     "usleep(5);", "sleep(1);", "nanosleep(&a, &b);"]:
            self.refused("actors/worker.cpp", f"void f() {{ {text} }}\n", "sleep")
            self.refused("tests/actors/worker_test.cpp", f"void f() {{ {text} }}\n", "sleep")

    def test_only_the_edges_read_a_clock(self):
        for text in ["std::chrono::system_clock::now();", "std::chrono::steady_clock::now();",
                     "clock_gettime(CLOCK_REALTIME, &t);", "std::time(nullptr);"]:
            self.refused("planning/portfolio.cpp", f"void f() {{ {text} }}\n", "clock")
            self.refused("tests/planning/x_test.cpp", f"void f() {{ {text} }}\n", "clock")
            self.allowed("gpu/children/runner.cpp", f"void f() {{ {text} }}\n")

    def test_a_header_uses_no_namespace(self):
        self.refused("scoring/score.hpp", "using namespace std;\n", "using-namespace")
        self.allowed("scoring/score.cpp", "using namespace std::chrono_literals;\n")

    def test_chance_comes_from_a_seed_and_our_own_generator(self):
        for text in ["std::random_device d;", "std::uniform_int_distribution<int> d(0, 5);",
                     "std::shuffle(a, b, g);", "rand();", "srand(1);"]:
            self.refused("planning/portfolio.cpp", f"void f() {{ {text} }}\n", "chance")
        self.allowed("planning/portfolio.cpp", "void f() { operand(1); g.rand(); }\n")

    def test_nobody_runs_a_shell(self):
        for text in ['system("ls");', 'auto p = popen("ls", "r");', "return std::system(c);"]:
            self.refused("actors/worker.cpp", f"int f() {{ {text} }}\n", "shell")
        self.allowed("actors/worker.cpp", "void f() { caf::actor_system system(config); x = system().spawn(g); }\n")

    def test_every_thread_has_an_owner(self):
        for text in ["t.detach();", "self->spawn<caf::detached>(g);", "self->spawn<lazy_init + detached>(g);"]:
            self.refused("actors/worker.cpp", f"void f() {{ {text} }}\n", "detach")

    def test_only_main_programs_read_the_environment(self):
        self.refused("actors/worker.cpp", 'auto x = std::getenv("HOME");\n', "environment")
        self.allowed("cli/run.cpp", 'auto x = std::getenv("HOME");\n')
        self.allowed("gpu/children/jail.cpp", 'auto x = std::getenv("HOME");\n')
        self.allowed("tests/x_test.cpp", 'auto x = std::getenv("GRISTMILL_SHARED");\n')

    def test_a_banned_word_in_a_comment_or_a_text_is_none(self):
        self.allowed("actors/worker.cpp", '// system(x), sleep_for(1s)\nauto s = "rand()";\n'
                     'auto r = R"(steady_clock::now())";\nauto n = 1\'000\'000; auto q = \'"\';\n')

    def test_code_after_a_digit_separator_or_a_quote_is_still_read(self):
        self.refused("actors/worker.cpp", "auto n = 1'000; auto q = '\"'; int r = rand();\n", "chance")

    def test_a_header_is_read_once(self):
        self.write("scoring/bare.hpp", "int f();\n")
        found = check_layers.check_file(self.root, "scoring/bare.hpp")
        self.assertEqual([rule for _, rule, _ in found], ["pragma-once"])

    def test_nothing_is_left_for_later_without_an_issue(self):
        # Put together here, so that this file does not break the rule itself.
        word = "TO" + "DO"
        self.refused("scoring/score.cpp", f"// {word}: later\n", "unfinished")
        self.allowed("scoring/score.cpp", f"// {word} #12: later\n")


class Program(Scratch):
    def run_program(self, *arguments):
        return subprocess.run([sys.executable, str(PROGRAM), "--root", str(self.root), *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_a_clean_tree_exits_with_0_and_says_how_many_files_it_read(self):
        done = self.run_program()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"{len(TARGETS)} files, clean", done.stderr)

    def test_a_finding_names_file_line_and_rule_and_exits_with_1(self):
        self.write("messages/lease.cpp", '\n#include "cli/run.hpp"\n')
        done = self.run_program()
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.startswith("messages/lease.cpp:2: layer: "), done.stdout)

    def test_an_empty_tree_is_no_clean_tree(self):
        for name in TARGETS:
            (self.root / name).unlink()
        self.assertEqual(self.run_program().returncode, 2)

    @unittest.skipUnless(shutil.which("g++"), "SKIPPED: no g++ here")
    def test_a_header_that_does_not_build_on_its_own_is_refused(self):
        self.write("scoring/score.hpp", "#pragma once\nstd::string name();\n")
        self.assertEqual(self.run_program().returncode, 0)
        done = self.run_program("--headers", "scoring/score.hpp")
        self.assertEqual(done.returncode, 1)
        self.assertIn("scoring/score.hpp:1: header: does not build on its own", done.stdout)
        self.write("scoring/score.hpp", "#pragma once\n#include <string>\nstd::string name();\n")
        done = self.run_program("--headers", "scoring/score.hpp")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

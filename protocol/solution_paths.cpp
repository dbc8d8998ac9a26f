#include "protocol/json_document.hpp"
#include "protocol/solution.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <set>

namespace gristmill {

namespace {

// The sources are written into the folder of the evaluation after its own files, and that folder
// is the first place where Python looks for modules.

constexpr std::array<std::string_view, 6> files_of_the_evaluation{"definition.json",
  "workload.jsonl", "config.json", "solution.json", "traces.jsonl", "_reference.py"};

/// Modules that the evaluation, PyTorch or the languages of the format import.
constexpr std::array modules_of_others =
  std::to_array<std::string_view>({"_reference", "benchmark_kernel", "cuda", "cudnn", "cupti",
    "cupy", "cutlass", "filelock", "flashinfer", "fsspec", "jinja2", "mpmath", "networkx", "ninja",
    "numpy", "nvidia", "packaging", "pkg_resources", "pybind11", "pydantic", "pydantic_core",
    "safetensors", "scipy", "setuptools", "sitecustomize", "sol_execbench", "sympy", "torch",
    "triton", "tvm", "tvm_ffi", "typing_extensions", "usercustomize"});

/// The standard library of Python 3.11, without the names that begin with an underscore.
constexpr std::array modules_of_python = std::to_array<std::string_view>({"abc", "aifc", "argparse",
  "array", "ast", "asynchat", "asyncio", "asyncore", "atexit", "audioop", "base64", "bdb",
  "binascii", "bisect", "builtins", "bz2", "cProfile", "calendar", "cgi", "cgitb", "chunk", "cmath",
  "cmd", "code", "codecs", "codeop", "collections", "colorsys", "compileall", "concurrent",
  "configparser", "contextlib", "contextvars", "copy", "copyreg", "crypt", "csv", "ctypes",
  "curses", "dataclasses", "datetime", "dbm", "decimal", "difflib", "dis", "distutils", "doctest",
  "email", "encodings", "ensurepip", "enum", "errno", "faulthandler", "fcntl", "filecmp",
  "fileinput", "fnmatch", "fractions", "ftplib", "functools", "gc", "genericpath", "getopt",
  "getpass", "gettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac", "html",
  "http", "imaplib", "imghdr", "imp", "importlib", "inspect", "io", "ipaddress", "itertools",
  "json", "keyword", "lib2to3", "linecache", "locale", "logging", "lzma", "mailbox", "mailcap",
  "marshal", "math", "mimetypes", "mmap", "modulefinder", "msilib", "msvcrt", "multiprocessing",
  "netrc", "nis", "nntplib", "nt", "ntpath", "nturl2path", "numbers", "opcode", "operator",
  "optparse", "os", "ossaudiodev", "pathlib", "pdb", "pickle", "pickletools", "pipes", "pkgutil",
  "platform", "plistlib", "poplib", "posix", "posixpath", "pprint", "profile", "pstats", "pty",
  "pwd", "py_compile", "pyclbr", "pydoc", "pydoc_data", "pyexpat", "queue", "quopri", "random",
  "re", "readline", "reprlib", "resource", "rlcompleter", "runpy", "sched", "secrets", "select",
  "selectors", "shelve", "shlex", "shutil", "signal", "site", "smtpd", "smtplib", "sndhdr",
  "socket", "socketserver", "spwd", "sqlite3", "sre_compile", "sre_constants", "sre_parse", "ssl",
  "stat", "statistics", "string", "stringprep", "struct", "subprocess", "sunau", "symtable", "sys",
  "sysconfig", "syslog", "tabnanny", "tarfile", "telnetlib", "tempfile", "termios", "textwrap",
  "threading", "time", "timeit", "tkinter", "token", "tokenize", "tomllib", "trace", "traceback",
  "tracemalloc", "tty", "types", "typing", "unicodedata", "unittest", "urllib", "uu", "uuid",
  "venv", "warnings", "wave", "weakref", "webbrowser", "winreg", "winsound", "wsgiref", "xdrlib",
  "xml", "xmlrpc", "zipapp", "zipfile", "zipimport", "zlib", "zoneinfo"});

template <class Names>
bool is_among(const Names& names, std::string_view text) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

std::vector<std::string_view> components_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = path.find('/');
    parts.push_back(path.substr(0, end));
    if (end == std::string_view::npos)
      return parts;
    path.remove_prefix(end + 1);
  }
}

/// Case does not tell files apart on every file system.
std::string lower(std::string_view text) {
  std::string out{text};
  for (char& c : out)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_python_file(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyc") || file.ends_with(".pyd")
    || file.ends_with(".so");
}

std::string spelling_error(std::string_view path) {
  if (path.find('\\') != std::string_view::npos)
    return "has a backslash, which is a separator on other systems";
  if (path.size() > 1 && path[1] == ':')
    return "begins with a drive letter";
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(path.begin(), path.end(), control))
    return "has a control character";
  for (auto part : components_of(path))
    if (part.empty() || part == ".")
      return "has an empty component or `.`, so another path means the same file";
  return {};
}

std::string name_error(std::string_view path) {
  const auto parts = components_of(path);
  const auto file = lower(parts.back());
  if (parts.size() == 1 && is_among(files_of_the_evaluation, file))
    return "would replace a file of the evaluation";
  if (file.ends_with(".pth"))
    return "could be run at the start of every Python";
  if (!is_python_file(file))
    return {};
  // A folder shadows a module too, once there is Python in it.
  const auto first = lower(parts.front());
  const auto module = first.substr(0, first.find('.'));
  if (is_among(modules_of_others, module) || is_among(modules_of_python, module))
    return fmt::format("would shadow the Python module `{}`", module);
  return {};
}

} // namespace

std::vector<std::string> dangerous_paths(const solution& given) {
  std::vector<std::string> out;
  const auto refuse = [&](size_t i, const std::string& why) {
    out.push_back(fmt::format("sources.{}.path: {} {} (refused here, though the format allows it)",
      i, excerpt(given.sources[i].path), why));
  };
  std::map<std::string, size_t> files;
  std::set<std::string> folders;
  for (size_t i = 0; i < given.sources.size(); ++i) {
    const auto& path = given.sources[i].path;
    auto why = spelling_error(path);
    if (why.empty())
      why = name_error(path);
    if (!why.empty()) {
      refuse(i, why);
      continue;
    }
    const auto key = lower(path);
    if (!files.emplace(key, i).second)
      refuse(i, "differs from another source only in case");
    for (size_t slash = key.find('/'); slash != std::string::npos; slash = key.find('/', slash + 1))
      folders.insert(key.substr(0, slash));
  }
  for (const auto& [path, i] : files)
    if (folders.contains(path))
      refuse(i, "is the folder of another source");
  return out;
}

} // namespace gristmill

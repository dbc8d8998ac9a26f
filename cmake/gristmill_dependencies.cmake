# Everything from Debian 12. `scripts/install-dependencies` lists the packages.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_path(TL_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_library(CMARK_LIBRARY cmark REQUIRED)
find_path(CMARK_INCLUDE cmark.h REQUIRED)
add_library(cmark::cmark UNKNOWN IMPORTED)
set_target_properties(cmark::cmark PROPERTIES
  IMPORTED_LOCATION "${CMARK_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CMARK_INCLUDE}")
find_library(SECCOMP_LIBRARY seccomp REQUIRED)
find_path(SECCOMP_INCLUDE seccomp.h REQUIRED)
add_library(seccomp::seccomp UNKNOWN IMPORTED)
set_target_properties(seccomp::seccomp PROPERTIES
  IMPORTED_LOCATION "${SECCOMP_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SECCOMP_INCLUDE}")

# CAF 0.17 installs no package description; 0.18 and later do.
find_package(CAF QUIET CONFIG)
if(NOT CAF_FOUND)
  find_path(CAF_INCLUDE caf/all.hpp REQUIRED)
  find_library(CAF_LIBRARY_core caf_core REQUIRED)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION "${CAF_LIBRARY_core}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE}"
    INTERFACE_LINK_LIBRARIES Threads::Threads
    # The compiler then refuses a message that has no type ID.
    INTERFACE_COMPILE_DEFINITIONS CAF_ENABLE_TYPE_ID_CHECKS)
  # Only what talks to other machines uses it: actors/cluster_middleman.cpp.
  find_library(CAF_LIBRARY_io caf_io REQUIRED)
  add_library(CAF::io UNKNOWN IMPORTED)
  set_target_properties(CAF::io PROPERTIES
    IMPORTED_LOCATION "${CAF_LIBRARY_io}"
    INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE}"
    INTERFACE_LINK_LIBRARIES CAF::core)
endif()

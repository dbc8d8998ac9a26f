option(GRISTMILL_TESTS "build the tests" ON)
option(GRISTMILL_BENCH "build the programs in bench/" OFF)
option(GRISTMILL_FUZZ "build the targets in fuzz/ with libFuzzer (clang only)" OFF)
option(GRISTMILL_WERROR "warnings are errors" ON)
# Quicker from nothing, slower after a change and with ccache: for machines that build once.
set(GRISTMILL_UNITY "$ENV{GRISTMILL_UNITY}" CACHE BOOL "compile files of tests, and those with actors, four at a time")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# What every target of ours is compiled with. -ffp-contract=off and no -march=native: numbers that
# decide something must be the same in every build (contracts, section 9).
add_library(gristmill_flags INTERFACE)
target_include_directories(gristmill_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(gristmill_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -ffp-contract=off
  $<$<BOOL:${GRISTMILL_WERROR}>:-Werror>)

# gristmill_library(NAME SOURCES a.cpp b.cpp LINK other_library Third::party)
# One static library a folder.
function(gristmill_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gristmill_flags ${ARG_LINK})
endfunction()

# gristmill_together(NAME): for targets whose files spend most of their time on the same templates.
function(gristmill_together name)
  if(GRISTMILL_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
  endif()
endfunction()

# gristmill_program(NAME SOURCES main.cpp LINK ...): a program in the root of the build folder.
function(gristmill_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE gristmill_flags ${ARG_LINK})
  # Libraries are looked for beside the program first, so that `scripts/bundle` need not change it.
  # The old kind of path holds for the libraries of libraries too.
  set_target_properties(${name} PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
  target_link_options(${name} PRIVATE "LINKER:--disable-new-dtags")
endfunction()

# gristmill_test(NAME [APART] SOURCES x_test.cpp LINK ...): one doctest program, one ctest entry.
# APART: its files have names in common and can never be compiled together.
function(gristmill_test name)
  cmake_parse_arguments(ARG "APART" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(NOT ARG_APART)
    gristmill_together(${name})
  endif()
  target_link_libraries(${name} PRIVATE gristmill_flags gristmill_test_main ${ARG_LINK})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS "${ARG_LABELS}"
    ENVIRONMENT "GRISTMILL_BIN=${CMAKE_BINARY_DIR};GRISTMILL_SOURCE=${CMAKE_SOURCE_DIR}")
endfunction()

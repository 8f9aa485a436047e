# Compiler settings and the three verbs with which every folder describes itself:
#   ipoverbs_library(NAME SOURCES ... DEPS ...)   a floor
#   ipoverbs_test(NAME SOURCES ... DEPS ...)      a GoogleTest program, run by ctest; THREADED if it has
#                                                 more than one thread, for ThreadSanitizer to judge;
#                                                 HEAVY if it computes so long that it is optimised like
#                                                 what it tests
#   ipoverbs_fuzzer(NAME SOURCES ... DEPS ...)    a libFuzzer program (with IPOVERBS_FUZZERS)
#
# The sanitizer presets read common headers precompiled (IPOVERBS_PRECOMPILE): half of what a test takes to
# compile is GoogleTest and the standard library. GCC's presets do not, so that a file of what is shipped
# which forgot an include still fails to compile.
#
# For the same reason files of one target are compiled several at a time, as one (IPOVERBS_UNITY): "all" in
# the sanitizer presets; "tests" in the release preset, where what is shipped is compiled a file at a time. To
# the compiler the anonymous namespaces of a target's files are then one: what two of them need stands in a
# header, and of two things with the same name one gets a better name.

set(IPOVERBS_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")
set(IPOVERBS_OPTIMISE -O2 -g1 CACHE STRING "Optimisation and debug information")
set(IPOVERBS_TEST_OPTIMISE "" CACHE STRING "Optimisation of the tests' own files, where it is another")
option(IPOVERBS_PRECOMPILE "Precompile common headers" OFF)
set(IPOVERBS_UNITY "" CACHE STRING "Files compiled several at a time: all, tests (what is under tests/), or empty")
option(IPOVERBS_FUZZERS "Build the fuzzers (needs Clang)" OFF)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Assertions stay on in the shipped build: they stand outside the per-byte loops and cost nothing
# that a benchmark can see.
list(JOIN IPOVERBS_OPTIMISE " " CMAKE_CXX_FLAGS_RELWITHDEBINFO)

if(NOT IPOVERBS_UNITY MATCHES "^(all|tests|)$")
  message(FATAL_ERROR "IPOVERBS_UNITY is \"${IPOVERBS_UNITY}\": neither all nor tests nor empty")
elseif(IPOVERBS_UNITY STREQUAL "all")
  set(CMAKE_UNITY_BUILD ON)
endif()
# All at once would be least work in sum, but the daemon's files would then keep one processor for a minute.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

find_program(CCACHE ccache)
if(CCACHE AND IPOVERBS_PRECOMPILE)
  # What ccache asks for before it takes files that read precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
elseif(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(GTest REQUIRED)

add_library(ipoverbs_flags INTERFACE)
target_include_directories(ipoverbs_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ipoverbs_flags INTERFACE
  -Wall -Wextra -Wconversion -Wsign-conversion -Wold-style-cast -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(ipoverbs_flags INTERFACE -Wthread-safety)
endif()
if(IPOVERBS_SANITIZE)
  # Global, so that a static library compiled once serves tests and fuzzers alike.
  add_compile_options(-fsanitize=${IPOVERBS_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${IPOVERBS_SANITIZE})
  if(IPOVERBS_FUZZERS)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endif()

# ipoverbs_precompile(NAME OPTIONS ... HEADERS ...): a set of headers, compiled with OPTIONS once.
function(ipoverbs_precompile NAME)
  cmake_parse_arguments(ARG "" "" "OPTIONS;HEADERS" ${ARGN})
  file(WRITE ${CMAKE_BINARY_DIR}/${NAME}.cc "// Nothing but the headers that are precompiled.\n")
  add_library(${NAME} OBJECT ${CMAKE_BINARY_DIR}/${NAME}.cc)
  target_link_libraries(${NAME} PRIVATE ipoverbs_flags fmt::fmt GTest::gtest GTest::gmock Threads::Threads)
  target_compile_options(${NAME} PRIVATE ${ARG_OPTIONS})
  if(CCACHE)
    target_compile_options(${NAME} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
  target_precompile_headers(${NAME} PRIVATE ${ARG_HEADERS})
endfunction()

if(IPOVERBS_PRECOMPILE)
  set(common <algorithm> <array> <atomic> <bit> <cassert> <cerrno> <chrono> <cstdint> <cstring> <deque>
      <expected> <functional> <map> <memory> <optional> <set> <span> <stdexcept> <string> <string_view>
      <system_error> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)
  ipoverbs_precompile(ipoverbs_common_headers HEADERS ${common})
  ipoverbs_precompile(ipoverbs_test_headers OPTIONS ${IPOVERBS_TEST_OPTIMISE}
    HEADERS ${common} <filesystem> <fstream> <random> <thread> <gmock/gmock.h> <gtest/gtest.h>)
endif()

function(ipoverbs_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${NAME} PUBLIC ipoverbs_flags ${ARG_DEPS})
  if(IPOVERBS_PRECOMPILE)
    target_precompile_headers(${NAME} REUSE_FROM ipoverbs_common_headers)
  endif()
endfunction()

# What a file of tests is compiled with, beside the flags of all.
function(ipoverbs_compile_as_test NAME)
  target_compile_options(${NAME} PRIVATE ${IPOVERBS_TEST_OPTIMISE})
  if(IPOVERBS_PRECOMPILE)
    target_precompile_headers(${NAME} REUSE_FROM ipoverbs_test_headers)
  endif()
endfunction()

function(ipoverbs_test NAME)
  cmake_parse_arguments(ARG "THREADED;HEAVY" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT ARG_HEAVY)
    ipoverbs_compile_as_test(${NAME})
  endif()
  add_test(NAME ${NAME} COMMAND ${NAME})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  if(ARG_THREADED)
    set_tests_properties(${NAME} PROPERTIES LABELS threaded)
  endif()
endfunction()

function(ipoverbs_fuzzer NAME)
  if(NOT IPOVERBS_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} ipoverbs_flags)
  target_link_options(${NAME} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY IPOVERBS_FUZZER_TARGETS ${NAME})
endfunction()

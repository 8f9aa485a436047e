# Compiler settings and the three verbs with which every folder describes itself:
#   ipoverbs_library(NAME SOURCES ... DEPS ...)   a floor
#   ipoverbs_test(NAME SOURCES ... DEPS ...)      a GoogleTest program, run by ctest; THREADED if it has
#                                                 more than one thread, for ThreadSanitizer to judge
#   ipoverbs_fuzzer(NAME SOURCES ... DEPS ...)    a libFuzzer program (with IPOVERBS_FUZZERS)

set(IPOVERBS_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")
set(IPOVERBS_OPTIMISE -O2 -g CACHE STRING "Optimisation and debug information")
option(IPOVERBS_FUZZERS "Build the fuzzers (needs Clang)" OFF)

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# Assertions stay on in the shipped build: they stand outside the per-byte loops and cost nothing
# that a benchmark can see.
list(JOIN IPOVERBS_OPTIMISE " " CMAKE_CXX_FLAGS_RELWITHDEBINFO)

find_program(CCACHE ccache)
if(CCACHE)
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

function(ipoverbs_library NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${NAME} PUBLIC ipoverbs_flags ${ARG_DEPS})
endfunction()

function(ipoverbs_test NAME)
  cmake_parse_arguments(ARG "THREADED" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${NAME} ${ARG_SOURCES})
  target_link_libraries(${NAME} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
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

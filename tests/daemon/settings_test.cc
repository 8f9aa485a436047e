#include "daemon/settings.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/daemon/complaint.h"

namespace ipoverbs::daemon {
namespace {

const Grammar& grammar() {
  static const Grammar grammar("ipoverbs try", {{"Options",
                                                 {{"mtu", "N", "a number"},
                                                  {"peer", "P", "a peer", true},
                                                  {"tun", "NAME", "a name"},
                                                  {"check", "", "a flag"}}}});
  return grammar;
}

std::string text_of(const std::vector<Setting>& settings) {
  std::string text;
  for (const Setting& s : settings) text += fmt::format("[{}|{}|{}]", s.key, s.value, s.origin);
  return text;
}

std::string config(std::string_view text) {
  return text_of(grammar().parse_config(text, "n.conf"));
}

std::string config_complaint(std::string_view text) {
  return complaint_of([&] { return grammar().parse_config(text, "n.conf"); });
}

std::string command_line_complaint(const std::vector<std::string>& args) {
  return complaint_of([&] { return grammar().parse_command_line(args); });
}

TEST(Config, ReadsKeysAndRemembersLines) {
  EXPECT_EQ(config(""), "");
  EXPECT_EQ(config("\n\n"), "");
  EXPECT_EQ(config("mtu = 1500\n"), "[mtu|1500|n.conf:1: mtu]");
  EXPECT_EQ(config("# a comment\n\n\tmtu=1500 \n"), "[mtu|1500|n.conf:3: mtu]");
  EXPECT_EQ(config("peer = a b\npeer = c\n"), "[peer|a b|n.conf:1: peer][peer|c|n.conf:2: peer]");
}

TEST(Config, HashStartsACommentOnlyBehindABlank) {
  EXPECT_EQ(config("tun = a#b\n"), "[tun|a#b|n.conf:1: tun]");
  EXPECT_EQ(config("tun = a # b\n"), "[tun|a|n.conf:1: tun]");
  EXPECT_EQ(config("tun = a\t#\n"), "[tun|a|n.conf:1: tun]");
  EXPECT_EQ(config("  # tun = a\n"), "");
}

TEST(Config, TakesWhatThePartsOfAValueLookLikeOptions) {
  EXPECT_EQ(config("tun = --mtu=3\n"), "[tun|--mtu=3|n.conf:1: tun]");
  EXPECT_EQ(config("tun = a=b\n"), "[tun|a=b|n.conf:1: tun]");
  EXPECT_EQ(config("tun = -1\n"), "[tun|-1|n.conf:1: tun]");
  EXPECT_EQ(config("tun = \"a\"\n"), "[tun|\"a\"|n.conf:1: tun]");
}

TEST(Config, RefusesWithFileAndLine) {
  const std::pair<std::string, std::string> kCases[] = {
      {"mtuu = 9000\n", "n.conf:1: unknown option 'mtuu'; did you mean 'mtu'?"},
      {"\nnonsense = 1\n",
       "n.conf:2: unknown option 'nonsense'; 'ipoverbs try --help' lists the options"},
      {"mt = 9000\n", "n.conf:1: unknown option 'mt'; did you mean 'mtu'?"},
      {"pee = 9000\n", "n.conf:1: unknown option 'pee'; did you mean 'peer'?"},
      {"MTU = 9000\n", "n.conf:1: unknown option 'MTU'; 'ipoverbs try --help' lists the options"},
      {" = 1\n", "n.conf:1: unknown option ''; 'ipoverbs try --help' lists the options"},
      {"[section]\n", "n.conf:1: '[section]' is not 'key = value'"},
      {"mtu\n", "n.conf:1: 'mtu' is not 'key = value'"},
      {"mtu 9000\n", "n.conf:1: 'mtu 9000' is not 'key = value'"},
      {"mtu =\n", "n.conf:1: mtu: a value is missing"},
      {"mtu = # 1500\n", "n.conf:1: mtu: a value is missing"},
      {"check = on\n", "n.conf:1: 'check' belongs on the command line, not into a file"},
      {"mtu = 1\ntun = a\nmtu = 2\n",
       "n.conf:3: mtu: already given at n.conf:1: mtu; give it once"},
      {"mtu = 1500\r\n",
       "n.conf:1: the line ends with CR LF; save the file with Unix line ends (LF)"},
      {"mtu = 1500",
       "n.conf:1: the last line does not end with a newline; the file may have been cut off"},
      {"tun = a\n#",
       "n.conf:2: the last line does not end with a newline; the file may have been cut off"},
      {"m\x1btu = 1\n", "n.conf:1: unknown option 'm\\x1btu'; did you mean 'mtu'?"},
  };
  for (const auto& [text, right] : kCases) EXPECT_EQ(config_complaint(text), right) << text;
}

TEST(Config, RefusesNulBytesAndEndlessLines) {
  using namespace std::string_literals;
  EXPECT_EQ(config_complaint("mtu = 15\0"s + "00\n"),
            "n.conf:1: the line has a NUL byte; the file must be plain text");
  EXPECT_EQ(config_complaint("tun = a\n" + std::string(1'000'000, 'x') + "\n"),
            "n.conf:2: the line has 1000000 bytes; at most 65536 are allowed");
  EXPECT_EQ(config_complaint(std::string(1'000'000, 'x')),
            "n.conf:1: the line has 1000000 bytes; at most 65536 are allowed");
  const std::string longest = "tun = " + std::string(kMaxLine - 6, 'x') + "\n";
  EXPECT_EQ(grammar().parse_config(longest, "n.conf").at(0).value.size(), kMaxLine - 6);
}

TEST(CommandLine, TakesValuesAdjacentAndNext) {
  const std::vector<std::string> args{"--mtu",  "1500", "--tun=a", "--check",
                                      "--peer", "x y",  "--peer=z"};
  EXPECT_EQ(text_of(grammar().parse_command_line(args)),
            "[mtu|1500|--mtu][tun|a|--tun][check||--check][peer|x y|--peer][peer|z|--peer]");
  EXPECT_EQ(text_of(grammar().parse_command_line(std::vector<std::string>{"--mtu", "-1"})),
            "[mtu|-1|--mtu]");
}

TEST(CommandLine, RefusesByName) {
  const std::pair<std::vector<std::string>, std::string> kCases[] = {
      {{"--mtuu", "1"}, "unknown option 'mtuu'; did you mean 'mtu'?"},
      {{"--nonsense"}, "unknown option 'nonsense'; 'ipoverbs try --help' lists the options"},
      {{"--pee", "1"}, "unknown option 'pee'; did you mean 'peer'?"},
      {{"--mtu"}, "--mtu: a value is missing"},
      {{"--mtu="}, "--mtu: a value is missing"},
      {{"--mtu", ""}, "--mtu: a value is missing"},
      {{"--mtu", " "}, "--mtu: a value is missing"},
      {{"--mtu", "--tun", "a"}, "--mtu: a value is missing"},
      {{"--check=1"}, "--check: takes no value"},
      {{"--mtu", "1", "--mtu", "2"}, "--mtu: given more than once; give it once"},
      {{"stray"}, "unexpected argument 'stray'; 'ipoverbs try --help' shows the usage"},
      {{"-m", "1"}, "unexpected argument '-m'; 'ipoverbs try --help' shows the usage"},
      {{"--", "--mtu"}, "unexpected argument '--mtu'; 'ipoverbs try --help' shows the usage"},
      {{""}, "unexpected argument ''; 'ipoverbs try --help' shows the usage"},
  };
  for (const auto& [args, right] : kCases) EXPECT_EQ(command_line_complaint(args), right);
}

TEST(ConfigFile, NamesAFileThatCannotBeRead) {
  EXPECT_EQ(complaint_of([] { return read_config_file("/nonexistent/x"); }),
            "--config: cannot read '/nonexistent/x': No such file or directory");
  EXPECT_EQ(complaint_of([] { return read_config_file("/"); }),
            "--config: cannot read '/': Is a directory");
  EXPECT_EQ(complaint_of([] { return read_config_file("/dev/zero"); }),
            "--config: '/dev/zero' is larger than 16777216 bytes");
}

TEST(Quote, KeepsAMessageOnOneShortLine) {
  EXPECT_EQ(quote("a b"), "'a b'");
  EXPECT_EQ(quote("a\nb\x7f\xc3"), "'a\\x0ab\\x7f\\xc3'");
  EXPECT_EQ(quote(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
}

}  // namespace
}  // namespace ipoverbs::daemon

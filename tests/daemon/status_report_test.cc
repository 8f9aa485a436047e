#include "daemon/status_report.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "daemon/devices_report.h"
#include "daemon/up_options.h"
#include "tests/daemon/example_status.h"
#include "transport/counters.h"

namespace ipoverbs::daemon {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::string(IPOVERBS_SOURCE) + "/" + name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StatusReport, JsonIsAsItWas) {
  EXPECT_EQ(format_status_json(example_status()), read("tests/daemon/status.json"));
}

TEST(StatusReport, TextIsAsItWas) {
  EXPECT_EQ(format_status_text(example_status()), read("tests/daemon/status.txt"));
}

TEST(StatusReport, ADeviceThatNeverOpenedIsShown) {
  DaemonStatus status = example_status();
  status.node.device = {};
  status.node.device_state = "cannot open: gone";
  EXPECT_NE(format_status_text(status).find("device     cannot open: gone\n"), std::string::npos);
}

TEST(StatusReport, BytesThatAreNoUtf8DoNotBreakTheJson) {
  DaemonStatus status = example_status();
  status.node.peers[0].sessions[0].last_error = "\xff";
  EXPECT_TRUE(nlohmann::json::accept(format_status_json(status)));
}

TEST(DevicesReport, IsAsItWas) {
  EXPECT_EQ(format_devices_text(example_devices()), read("tests/daemon/devices.txt"));
  EXPECT_EQ(format_devices_json(example_devices()), read("tests/daemon/devices.json"));
  EXPECT_EQ(format_devices_text({{}, "no such module"}), "no RDMA device: no such module\n");
}

// Every key at any depth.
void collect_keys(const nlohmann::json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect_keys(value, keys);
  }
}

TEST(Manual, DescribesEveryKeyAndOption) {
  const std::string manual = read("docs/manual.md");
  std::set<std::string> words;
  collect_keys(nlohmann::json::parse(format_status_json(example_status())), words);
  collect_keys(nlohmann::json::parse(format_devices_json(example_devices())), words);
  for (const auto& name : transport::kCounterNames) words.insert(std::string(name));
  const std::string help = up_grammar().help();
  for (std::size_t at = help.find("  --"); at != std::string::npos;
       at = help.find("  --", at + 1)) {
    const std::size_t begin = at + 4;
    words.insert(help.substr(begin, help.find_first_of(" \n", begin) - begin));
  }
  EXPECT_GT(words.size(), 100U);
  std::erase_if(words, [&](const std::string& word) {
    return manual.find('`' + word + '`') != std::string::npos;
  });
  EXPECT_THAT(words, ::testing::IsEmpty()) << "are not described in docs/manual.md";
}

}  // namespace
}  // namespace ipoverbs::daemon

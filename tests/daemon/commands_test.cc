#include "daemon/commands.h"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/daemon/temporary_folder.h"

namespace ipoverbs::daemon {
namespace {

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int status = run_program(args, out, err);
  return {status, out.str(), err.str()};
}

TEST(Program, ExplainsItself) {
  const std::pair<std::vector<std::string>, std::string> kCases[] = {
      {{"--help"}, "ipoverbs devices"},
      {{"-h"}, "ipoverbs up"},
      {{"help"}, "ipoverbs status"},
      {{"up", "--help"}, "--underlay ADDRESS"},
      {{"up", "-h"}, "rdma link add rxe0"},
      {{"up", "--mtu", "1500", "--help"}, "# /etc/ipoverbs.conf"},
      {{"status", "--help"}, "--json"},
      {{"devices", "--help"}, "--json"},
      {{"version", "--help"}, "Usage: ipoverbs version"},
      {{"version"}, "ipoverbs 0.1.0 (wire version 1)\n"},
      {{"--version"}, "ipoverbs 0.1.0 (wire version 1)\n"},
  };
  for (const auto& [args, part] : kCases) {
    const Outcome outcome = run(args);
    EXPECT_EQ(outcome.status, 0) << part;
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part;
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(Program, AComplaintIsOneLineAndStatus2) {
  const std::string known = "up, status, devices, version; 'ipoverbs --help' explains\n";
  const std::pair<std::vector<std::string>, std::string> kCases[] = {
      {{}, "ipoverbs: no command; the commands are " + known},
      {{"sideways"}, "ipoverbs: unknown command 'sideways'; the commands are " + known},
      {{"up", "--mtu", "67"}, "ipoverbs: --mtu: '67' is not a number from 68 to 65520\n"},
      {{"up", "--config", "/nonexistent"},
       "ipoverbs: --config: cannot read '/nonexistent': No such file or directory\n"},
      {{"status", "--jsn"}, "ipoverbs: unknown option 'jsn'; did you mean 'json'?\n"},
      {{"devices", "x"},
       "ipoverbs: unexpected argument 'x'; 'ipoverbs devices --help' shows the usage\n"},
      {{"version", "--json"},
       "ipoverbs: unknown option 'json'; 'ipoverbs version --help' lists the options\n"},
      {{"up", "--underlay", "192.0.2.1", "--control", "/proc/x.sock"},
       "ipoverbs: --control: '/proc/x.sock': cannot make the socket: No such file or directory\n"},
  };
  for (const auto& [args, right] : kCases) {
    const Outcome outcome = run(args);
    EXPECT_EQ(outcome.status, 2) << right;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, right);
  }
}

TEST(Program, StatusOfNobodyIsStatus1) {
  const Outcome outcome = run({"status", "--control", "/nonexistent/t0.sock"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
            "ipoverbs: no daemon answers at '/nonexistent/t0.sock' (No such file or directory); is "
            "'ipoverbs up' running? --tun or --control name another\n");
}

TEST(Program, CheckSaysWhatIsWrongAndTouchesNothing) {
  const TemporaryFolder folder;
  const std::string file = folder / "n.conf";
  std::ofstream(file) << "underlay = 192.0.2.1\ncontrol = " << folder / "made/t0.sock"
                      << "\naddress = 10.77.0.1/24\npeer = 192.0.2.2 10.78.0.1/24\n";
  const Outcome good = run({"up", "--config", file, "--check"});
  EXPECT_EQ(good.status, 0);
  EXPECT_EQ(good.out, "");
  EXPECT_EQ(good.err, fmt::format("ipoverbs: warning: {}:4: peer: 10.78.0.1/24 has host bits; "
                                  "taken as 10.78.0.0/24\n",
                                  file));
  EXPECT_FALSE(std::filesystem::exists(folder / "made"));
  std::ofstream(file, std::ios::app) << "mtuu = 9000\n";
  const Outcome bad = run({"up", "--config", file, "--check"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_EQ(bad.err,
            fmt::format("ipoverbs: {}:5: unknown option 'mtuu'; did you mean 'mtu'?\n", file));
}

TEST(Program, DevicesIsJsonWithOrWithoutRdma) {
  const Outcome outcome = run({"devices", "--json"});
  EXPECT_EQ(outcome.status, 0);
  const auto json = nlohmann::json::parse(outcome.out);
  // The software device is always there, and comes last.
  EXPECT_EQ(json.at("ports").back().at("device"), "soft");
  EXPECT_EQ(json.at("ports").size() == 1, !json.at("why_empty").get<std::string>().empty());
}

}  // namespace
}  // namespace ipoverbs::daemon

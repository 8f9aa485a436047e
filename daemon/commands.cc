#include "daemon/commands.h"

#include <net/if.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/log.h"
#include "daemon/control_socket.h"
#include "daemon/device_choice.h"
#include "daemon/devices_report.h"
#include "daemon/help.h"
#include "daemon/service.h"
#include "daemon/settings.h"
#include "daemon/up_options.h"
#include "transport/hello.h"
#include "verbs/open.h"
#include "verbs/soft/open.h"

namespace ipoverbs::daemon {

namespace {

using Args = std::span<const std::string>;

constexpr int kSuccess = 0;
constexpr int kFailed = 1;
constexpr int kNotStarted = 2;

constexpr Key kHelpKey{"help", "", "show this text"};

const Setting* find(const std::vector<Setting>& settings, std::string_view key) {
  const auto found = std::ranges::find(settings, key, &Setting::key);
  return found == settings.end() ? nullptr : &*found;
}

std::uint32_t interface_index(const std::string& name) { return ::if_nametoindex(name.c_str()); }

std::uint64_t random_node_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    if (::getrandom(&id, sizeof id, 0) != sizeof id) throw SystemError(errno, "draw a node id");
  }
  return id;
}

// One line is said about what keeps the daemon from starting, hence no information before it is up;
// who asks for debugging gets everything.
std::unique_ptr<Service> set_up(const UpCommand& command, Logger& logger) {
  const auto level = logger.level();
  logger.set_level(level == LogLevel::Info ? LogLevel::Warn : level);
  const auto choice = std::make_shared<DeviceChoice>(command.options.device_kind, random_node_id(),
                                                     command.options.soft_faults);
  const auto open_device = [choice](const verbs::DeviceRequest& request, Logger& log) {
    return choice->open(request, log);
  };
  auto service = std::make_unique<Service>(command.options, open_device, random_node_id(), logger);
  logger.set_level(level);
  return service;
}

int up(Args args, std::ostream& out, std::ostream& err) {
  const UpCommand command = parse_up(args, interface_index);
  if (command.help) {
    out << up_help(up_grammar().help());
    return kSuccess;
  }
  if (command.check) {
    for (const auto& warning : command.warnings) err << "ipoverbs: warning: " << warning << '\n';
    return kSuccess;
  }
  const auto logger = make_stderr_logger(command.options.log_level);
  std::unique_ptr<Service> service;
  try {
    service = set_up(command, *logger);
  } catch (const std::system_error& error) {
    throw UsageError(error.what());
  }
  for (const auto& warning : command.warnings) logger->warn("{}", warning);
  service->run();
  return kSuccess;
}

std::string ask(const std::string& path, Request request) {
  try {
    return ask_daemon(path, format_request(request));
  } catch (const SystemError& error) {
    throw std::runtime_error(fmt::format(
        "no daemon answers at {} ({}); is 'ipoverbs up' running? --tun or --control name another",
        quote(path), error.code().message()));
  }
}

int status(Args args, std::ostream& out, std::ostream&) {
  const Grammar grammar(
      "ipoverbs status",
      {{"Options",
        {{"json", "", "as JSON; docs/manual.md describes the keys"},
         {"tun", "NAME", "the daemon of this interface (default ipov0)"},
         {"control", "PATH", "its control socket (default /run/ipoverbs/<tun>.sock)"},
         kHelpKey}}});
  const std::vector<Setting> settings = grammar.parse_command_line(args);
  if (find(settings, "help") != nullptr) {
    out << status_help(grammar.help());
    return kSuccess;
  }
  const Setting* const tun = find(settings, "tun");
  const Setting* const control = find(settings, "control");
  const std::string path = control != nullptr
                               ? control->value
                               : default_control_path(tun != nullptr ? tun->value : kDefaultTun);
  const Request request =
      find(settings, "json") != nullptr ? Request::StatusJson : Request::StatusText;
  const auto answer = parse_answer(ask(path, request));
  if (!answer) throw std::runtime_error(fmt::format("{}: {}", quote(path), answer.error()));
  out << *answer;
  return kSuccess;
}

int devices(Args args, std::ostream& out, std::ostream&) {
  const Grammar grammar(
      "ipoverbs devices",
      {{"Options", {{"json", "", "as JSON; docs/manual.md describes the keys"}, kHelpKey}}});
  const std::vector<Setting> settings = grammar.parse_command_line(args);
  if (find(settings, "help") != nullptr) {
    out << devices_help(grammar.help());
    return kSuccess;
  }
  verbs::DeviceList list = verbs::list_rdma_devices();
  list.ports.push_back(verbs::soft::describe_soft_device());
  out << (find(settings, "json") != nullptr ? format_devices_json(list)
                                            : format_devices_text(list));
  return kSuccess;
}

int version(Args args, std::ostream& out, std::ostream&) {
  const Grammar grammar("ipoverbs version", {{"Options", {kHelpKey}}});
  if (!grammar.parse_command_line(args).empty()) {
    out << "Usage: ipoverbs version\n\nPrints the version of the program and of its wire format; "
           "two daemons talk if\nthe latter is the same.\n";
    return kSuccess;
  }
  out << fmt::format("ipoverbs {} (wire version {})\n", IPOVERBS_VERSION, transport::kWireVersion);
  return kSuccess;
}

int dispatch(Args args, std::ostream& out, std::ostream& err) {
  constexpr std::string_view kKnown = "up, status, devices, version; 'ipoverbs --help' explains";
  if (args.empty()) throw UsageError(fmt::format("no command; the commands are {}", kKnown));
  const std::string& command = args[0];
  const Args rest = args.subspan(1);
  if (command == "up") return up(rest, out, err);
  if (command == "status") return status(rest, out, err);
  if (command == "devices") return devices(rest, out, err);
  if (command == "version" || command == "--version") return version(rest, out, err);
  if (command == "--help" || command == "help") {
    out << general_help();
    return kSuccess;
  }
  throw UsageError(fmt::format("unknown command {}; the commands are {}", quote(command), kKnown));
}

}  // namespace

int run_program(std::span<const std::string> args, std::ostream& out, std::ostream& err) {
  std::vector<std::string> words(args.begin(), args.end());
  std::ranges::replace(words, std::string("-h"), std::string("--help"));
  try {
    const int status = dispatch(words, out, err);
    out.flush();
    if (out) return status;
    err << "ipoverbs: the output could not be written\n";
  } catch (const UsageError& error) {
    err << "ipoverbs: " << error.what() << '\n';
    return kNotStarted;
  } catch (const std::exception& error) {
    err << "ipoverbs: " << error.what() << '\n';
  }
  return kFailed;
}

}  // namespace ipoverbs::daemon

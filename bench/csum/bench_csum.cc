// Compares sum() and copy() of csum/ with memcpy, memcpy followed by a sum, scalar add-with-carry
// and DPDK's rte_raw_cksum.
//
//   bench_csum [--rounds N] [--quick] [--temperature NAME] [--target NAME]
//              [--json FILE] [--plot FILE]
//
// One process measures everything in rounds: in each round all contestants of a setting run one
// after another, beginning with another one each time, so that what the machine does meanwhile hits
// all alike; goals compare figures of the same round. Time is the thread's CPU time, which other
// programs on the same processor don't stretch, and the thread stays on the processor it began on.
//
// "fused" and "memcpy-then-sum" end with a partial sum, which a packet folds once; "sum", "scalar"
// and "rte_raw_cksum" end with the folded one.
//
// Temperatures: "hot" uses one source and one destination over and over; "cold" walks both through
// 256 MiB; "cold-source" walks the source and reuses the destination. A destination lies 2368 bytes
// off its source modulo 4 KiB, so that no load waits for an unrelated store.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/csum/contestants.h"
#include "bench/csum/plot.h"
#include "bench/csum/report.h"
#include "core/memory.h"
#include "csum/csum.h"

namespace ipoverbs::bench {
namespace {

constexpr std::size_t kWalk = std::size_t{256} << 20;
constexpr std::size_t kOffset = 2368;
constexpr std::array<std::size_t, 8> kSizes = {20, 64, 256, 1500, 4096, 9000, 16384, 65520};
constexpr std::array<std::string_view, 3> kTemperatures = {"hot", "cold", "cold-source"};

struct Options {
  int rounds = 21;
  bool quick = false;
  std::string temperature;  // all if empty
  std::string target;       // the public functions if empty
  std::string json;
  std::string plot;
};

// Source and destination, each touched once so that it has pages of its own.
class Arena {
 public:
  Arena() : source_(kWalk + kOffset), destination_(kWalk + kOffset) {
    std::uint64_t state = 1;
    for (std::byte& b : source_.bytes()) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      b = static_cast<std::byte>(state >> 56);
    }
    std::ranges::copy(source_.bytes(), destination_.bytes().begin());
  }
  [[nodiscard]] const std::byte* source() const { return source_.bytes().data(); }
  [[nodiscard]] std::byte* destination() const { return destination_.bytes().data() + kOffset; }

 private:
  MappedMemory source_;
  MappedMemory destination_;
};

// A value that the compiler knows nothing about: what follows from it isn't computed ahead of a
// loop.
std::size_t opaque(std::size_t n) {
  asm volatile("" : "+r"(n));
  return n;
}

// `Work` is called as work(to, from, size) and inlined: what is measured is what a caller gets. The
// first calls, which find nothing in the caches, are lost among the others.
template <class Work>
void run(benchmark::State& state, const Arena& arena, const Setting& setting, Work work) {
  const std::size_t size = setting.size;
  const bool walk_source = setting.temperature != "hot";
  const bool walk_destination = setting.temperature == "cold";
  const std::size_t stride = (size + 63) & ~std::size_t{63};
  const auto step = [&](std::size_t at) { return at + 2 * stride <= kWalk ? at + stride : 0; };
  const std::byte* const source = arena.source();
  std::byte* const destination = arena.destination();
  if (!walk_source) {
    for (auto _ : state) {
      benchmark::DoNotOptimize(work(destination, source, opaque(size)));
    }
    return;
  }
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        work(destination + (walk_destination ? at : 0), source + at, opaque(size)));
    at = step(at);
  }
}

// Lambdas that a loop must not call.
#define INLINED __attribute__((always_inline))

// Registers the contestants of one setting, in an order that differs from round to round.
class Registry {
 public:
  Registry(const Arena& arena, std::size_t divide) : arena_(arena), divide_(divide) {}

  void add(std::string name, auto work) {
    contestants_.push_back(
        {name, [this, name, work](const Setting& setting) { register_one(name, setting, work); }});
  }
  void register_all(const Setting& setting, int round) {
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      const std::size_t turn = (i + static_cast<std::size_t>(round)) % contestants_.size();
      contestants_[turn].enlist(setting);
    }
  }
  [[nodiscard]] const std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Contestant& c : contestants_) all.push_back(c.name);
    return all;
  }

 private:
  struct Contestant {
    std::string name;
    std::function<void(const Setting&)> enlist;
  };

  // Some milliseconds when hot, one walk when cold; less of it when quick.
  [[nodiscard]] benchmark::IterationCount iterations(const Setting& setting) const {
    const std::size_t stride = (setting.size + 63) & ~std::size_t{63};
    const std::size_t calls = kWalk / stride / divide_;
    return static_cast<benchmark::IterationCount>(
        setting.temperature == "hot" ? std::min<std::size_t>(calls, 1 << 19) : calls);
  }
  void register_one(const std::string& name, const Setting& setting, auto work) {
    const std::string full = fmt::format("{}/{}/{}", name, setting.size, setting.temperature);
    benchmark::RegisterBenchmark(full.c_str(), [this, setting, work](benchmark::State& state) {
      run(state, arena_, setting, work);
    })->Iterations(iterations(setting));
  }

  const Arena& arena_;
  std::size_t divide_;
  std::vector<Contestant> contestants_;
};

// The contestants of the given kernels, or of the public functions if there are none.
void enlist_ours(Registry& registry) {
  registry.add("fused", [](std::byte* to, const std::byte* from, std::size_t n)
                            INLINED { return csum::copy(std::span(to, n), std::span(from, n)); });
  registry.add("sum", [](std::byte*, const std::byte* from, std::size_t n)
                          INLINED { return csum::sum(std::span(from, n)).folded(); });
  registry.add("memcpy", [](std::byte* to, const std::byte* from, std::size_t n) INLINED {
    std::memcpy(to, from, n);
    return 0;
  });
  registry.add("memcpy-then-sum", [](std::byte* to, const std::byte* from, std::size_t n) INLINED {
    std::memcpy(to, from, n);
    return csum::sum(std::span<const std::byte>(to, n));
  });
}

void enlist_kernels(Registry& registry, const csum::detail::Kernels& kernels) {
  registry.add("fused", [kernels](std::byte* to, const std::byte* from, std::size_t n) INLINED {
    return csum::Partial::of_accumulator(kernels.copy(to, from, n));
  });
  registry.add("sum", [kernels](std::byte*, const std::byte* from, std::size_t n) INLINED {
    return csum::Partial::of_accumulator(kernels.sum(from, n)).folded();
  });
  registry.add("memcpy", [](std::byte* to, const std::byte* from, std::size_t n) INLINED {
    std::memcpy(to, from, n);
    return 0;
  });
  registry.add("memcpy-then-sum",
               [kernels](std::byte* to, const std::byte* from, std::size_t n) INLINED {
                 std::memcpy(to, from, n);
                 return csum::Partial::of_accumulator(kernels.sum(to, n));
               });
}

void enlist_others(Registry& registry) {
  registry.add("scalar", [](std::byte*, const std::byte* from, std::size_t n)
                             INLINED { return scalar_sum(from, n); });
#ifdef BENCH_CSUM_RTE
  registry.add("rte_raw_cksum", [](std::byte*, const std::byte* from, std::size_t n)
                                    INLINED { return rte_sum(from, n); });
#endif
}

// Takes the figures of one setting and round.
class Collector : public benchmark::BenchmarkReporter {
 public:
  Collector(Setting setting, int round) : setting_(std::move(setting)), round_(round) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const std::string name = run.run_name.function_name;
      const double bytes = static_cast<double>(run.iterations) * static_cast<double>(setting_.size);
      found_[name.substr(0, name.find('/'))] = bytes / run.cpu_accumulated_time / 1e9;
    }
  }
  // In the order of `contestants`.
  void hand_over(Report& report, const std::vector<std::string>& contestants) const {
    for (const std::string& name : contestants) {
      report.add({name, setting_, round_, found_.at(name)});
    }
  }

 private:
  Setting setting_;
  int round_;
  std::map<std::string, double> found_;
};

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string model = "unknown CPU";
  std::string family;
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const std::string value = line.substr(std::min(line.size(), line.find(':') + 2));
    if (line.starts_with("model name")) model = value;
    if (line.starts_with("cpu family")) family = ", family " + value;
    if (line.starts_with("model\t")) family += ", model " + value;
  }
  return model + family;
}

Options parse(std::span<char*> arguments) {
  Options options;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == arguments.size()) throw std::invalid_argument(fmt::format("{}: no value", name));
      return arguments[++i];
    };
    if (name == "--quick") {
      options.quick = true;
      options.rounds = 5;
    } else if (name == "--rounds") {
      options.rounds = std::atoi(value().c_str());
    } else if (name == "--temperature") {
      options.temperature = value();
    } else if (name == "--target") {
      options.target = value();
    } else if (name == "--json") {
      options.json = value();
    } else if (name == "--plot") {
      options.plot = value();
    } else {
      throw std::invalid_argument(fmt::format("{}: unknown option", name));
    }
  }
  if (options.rounds < 1) throw std::invalid_argument("--rounds: at least 1");
  return options;
}

csum::detail::Kernels kernels_named(std::string_view target) {
  std::string known;
  for (const csum::detail::Kernels& kernels : csum::detail::runnable_kernels()) {
    if (kernels.target == target) return kernels;
    known += fmt::format(" {}", kernels.target);
  }
  throw std::invalid_argument(fmt::format("--target {}: this machine has{}", target, known));
}

Report measure(const Options& options) {
  const Arena arena;
  Registry registry(arena, options.quick ? 8 : 1);
  std::string target = csum::detail::kKernels.target;
  if (options.target.empty()) {
    enlist_ours(registry);
  } else {
    enlist_kernels(registry, kernels_named(options.target));
    target = options.target;
  }
  enlist_others(registry);
  Report report({cpu_name(), BENCH_CSUM_COMPILER, BENCH_CSUM_FLAGS, target});
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::string_view temperature : kTemperatures) {
      if (!options.temperature.empty() && temperature != options.temperature) continue;
      for (const std::size_t size : kSizes) {
        const Setting setting{size, std::string(temperature)};
        benchmark::ClearRegisteredBenchmarks();
        registry.register_all(setting, round);
        Collector collector(setting, round);
        benchmark::RunSpecifiedBenchmarks(&collector);
        collector.hand_over(report, registry.names());
      }
    }
  }
  return report;
}

void stay_on_this_processor() {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(std::max(0, ::sched_getcpu())), &only);
  if (::sched_setaffinity(0, sizeof only, &only) != 0) {
    std::cerr << "cannot keep to one processor: figures will spread\n";
  }
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace
}  // namespace ipoverbs::bench

int main(int argc, char** argv) try {
  using namespace ipoverbs::bench;
  const Options options = parse(std::span(argv, static_cast<std::size_t>(argc)));
  stay_on_this_processor();
  const Report report = measure(options);
  report.print(std::cout);
  if (!options.json.empty()) write(options.json, report.json().dump(1) + "\n");
  if (!options.plot.empty()) write(options.plot, svg(report));
  return 0;
} catch (const std::invalid_argument& error) {
  std::cerr << error.what() << '\n';
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

#include "bench/csum/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace ipoverbs::bench {
namespace {

constexpr double kPanelWidth = 380;
constexpr double kPanelHeight = 300;
constexpr double kLeft = 50;
constexpr double kTop = 70;
constexpr double kGap = 60;

// Told apart with every kind of colour vision (Okabe and Ito's palette).
constexpr std::array<std::string_view, 6> kColours = {"#d55e00", "#0072b2", "#000000",
                                                      "#999999", "#cc79a7", "#009e73"};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

class Drawing {
 public:
  void line(double x1, double y1, double x2, double y2, std::string_view colour) {
    add(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>)", x1, y1, x2, y2,
        colour);
  }
  void text(double x, double y, std::string_view anchor, std::string_view words) {
    add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>)", x, y, anchor, escaped(words));
  }
  void point(double x, double y, std::string_view colour) {
    add(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.5" fill="{}"/>)", x, y, colour);
  }
  void path(const std::string& points, std::string_view colour) {
    add(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="1.8"/>)", points, colour);
  }
  [[nodiscard]] std::string document(double width, double height) const {
    return fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:.0f} {1:.0f}" font-family="sans-serif" font-size="12">)"
        "\n"
        R"(<rect width="{0:.0f}" height="{1:.0f}" fill="white"/>)"
        "\n{2}</svg>\n",
        width, height, body_);
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<T>(values)...);
    body_ += '\n';
  }
  std::string body_;
};

// The next of 1, 2, 5, 10, ... at or above a fifth of `most`: the distance of grid lines.
double grid_step(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= most / 5) return factor * power;
  }
  return 10 * power;
}

class Panel {
 public:
  Panel(const Report& report, std::string temperature, double left)
      : report_(report), temperature_(std::move(temperature)), left_(left) {
    for (const std::string& contestant : report.contestants()) {
      for (const std::size_t size : report.sizes()) {
        most_ = std::max(most_, report.median(contestant, {size, temperature_}).value_or(0));
      }
    }
  }

  void draw(Drawing& drawing) const {
    drawing.text(left_ + kPanelWidth / 2, kTop - 10, "middle", temperature_ + ", GB/s over bytes");
    const double step = grid_step(most_);
    for (double value = 0; value <= most_; value += step) {
      drawing.line(left_, y(value), left_ + kPanelWidth, y(value), "#dddddd");
      drawing.text(left_ - 6, y(value) + 4, "end", fmt::format("{:g}", value));
    }
    const std::vector<std::size_t> sizes = report_.sizes();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      drawing.text(x(i), kTop + kPanelHeight + 18, "middle", std::to_string(sizes[i]));
    }
    const std::vector<std::string> contestants = report_.contestants();
    for (std::size_t c = 0; c < contestants.size(); ++c) {
      draw_line(drawing, contestants[c], kColours[c % kColours.size()]);
    }
  }

 private:
  [[nodiscard]] double x(std::size_t i) const {
    const auto columns = static_cast<double>(std::max<std::size_t>(report_.sizes().size(), 2) - 1);
    return left_ + kPanelWidth * static_cast<double>(i) / columns;
  }
  [[nodiscard]] double y(double value) const { return kTop + kPanelHeight * (1 - value / most_); }

  void draw_line(Drawing& drawing, const std::string& contestant, std::string_view colour) const {
    std::string points;
    const std::vector<std::size_t> sizes = report_.sizes();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto value = report_.median(contestant, {sizes[i], temperature_});
      if (!value) continue;
      points += fmt::format("{:.1f},{:.1f} ", x(i), y(*value));
      drawing.point(x(i), y(*value), colour);
    }
    drawing.path(points, colour);
  }

  const Report& report_;
  std::string temperature_;
  double left_;
  double most_ = 1;
};

}  // namespace

std::string svg(const Report& report) {
  Drawing drawing;
  const Setup& setup = report.setup();
  drawing.text(kLeft, 20, "start",
               fmt::format("Internet checksum: {}, {} {}, Highway target {}", setup.cpu,
                           setup.compiler, setup.flags, setup.target));
  double at = kLeft;
  const std::vector<std::string> contestants = report.contestants();
  for (std::size_t c = 0; c < contestants.size(); ++c) {
    drawing.point(at, 38, kColours[c % kColours.size()]);
    drawing.text(at + 8, 42, "start", contestants[c]);
    at += 40 + 7 * static_cast<double>(contestants[c].size());
  }
  double left = kLeft;
  for (const std::string& temperature : report.temperatures()) {
    Panel(report, temperature, left).draw(drawing);
    left += kPanelWidth + kGap;
  }
  return drawing.document(left - kGap + 30, kTop + kPanelHeight + 40);
}

}  // namespace ipoverbs::bench

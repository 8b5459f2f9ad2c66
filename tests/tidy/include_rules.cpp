#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>
#include <string_view>

#include "tests/tidy/rooms.h"

namespace everstep::tidy {
namespace {

struct Home {
  std::vector<std::string_view> headers;  // prefixes of what stands between < and >
  std::vector<std::string_view> places;   // prefixes of paths; the mirror of a place in tests/ is at home too
};

const std::vector<Home>& homes() {
  static const std::vector<Home> table = {
      {{"nlohmann/"}, {"storage/json/"}},
      {{"H5", "hdf5"}, {"storage/hdf5/"}},
      {{"openssl/"}, {"storage/openssl/", "trainer/socket/tls/"}},
      {{"etcd/"}, {"elastic/etcd_cpp_api/"}},
      {{"google/protobuf/", "grpc/", "grpcpp/"}, {"elastic/etcd/", "elastic/etcd_cpp_api/"}},
      {{"ATen/", "c10/", "torch/"},
       {"trainer/torch/", "trainer/cuda/", "tests/accelerator/", "tests/cuda_runtime/", "tests/toolchain/"}},
      {{"xxh"}, {"trainer/xxhash/"}},
      {{"cpuid.h", "immintrin.h"}, {"trainer/torch/"}},
      {{"cublas", "cuda", "nccl.h"}, {"trainer/cuda/", "trainer/nccl/", "tests/cuda_runtime/"}},
      {{"dlfcn.h"}, {"trainer/nccl/"}},
      {{"cxxopts.hpp"}, {"launcher/cli/options.cpp"}},
      {{"fmt/", "httplib.h", "prometheus/", "spdlog/", "yaml-cpp/"}, {"launcher/"}},
      {{"benchmark/", "gmock/", "gtest/", "rapidcheck"}, {"tests/", "bench/"}},
      {{"arpa/", "dirent.h", "fcntl.h", "grp.h", "ifaddrs.h", "linux/", "malloc.h", "netdb.h", "netinet/", "poll.h",
        "sched.h", "signal.h", "spawn.h", "sys/", "unistd.h"},
       {"storage/posix/", "trainer/checkpoints/checkpoint_committer.cpp", "trainer/data/", "trainer/socket/",
        "launcher/", "tests/", "bench/"}},
  };
  return table;
}

struct Ban {
  std::string_view name;
  std::string_view hint;
};

constexpr std::string_view kTime = "take the time as an argument; only launcher has a clock";
constexpr std::string_view kThreads = "threads belong to launcher and to adapters; a core is a plain function or class";
constexpr std::string_view kFiles = "return text or take it as an argument; files belong to adapters and launcher";
constexpr std::string_view kOrder = "its order differs between runs: use std::map, std::set or a sorted vector";
constexpr std::string_view kRandom = "use the seeded streams of base/random.h";
constexpr std::string_view kOutput = "return the text; launcher prints (use <ostream> for operator<<)";

constexpr Ban kImpureHeaders[] = {{"atomic", kThreads},     {"barrier", kThreads},   {"condition_variable", kThreads},
                                  {"csignal", kThreads},    {"cstdio", kOutput},     {"ctime", kTime},
                                  {"filesystem", kFiles},   {"fstream", kFiles},     {"future", kThreads},
                                  {"iostream", kOutput},    {"latch", kThreads},     {"mutex", kThreads},
                                  {"random", kRandom},      {"semaphore", kThreads}, {"shared_mutex", kThreads},
                                  {"syncstream", kOutput},  {"thread", kThreads},    {"unordered_map", kOrder},
                                  {"unordered_set", kOrder}};

constexpr Ban kImpureWords[] = {{"getenv", "only launcher reads the environment: take the value as an argument"},
                                {"high_resolution_clock", kTime},
                                {"rand", kRandom},
                                {"random_device", kRandom},
                                {"sleep_for", kTime},
                                {"sleep_until", kTime},
                                {"steady_clock", kTime},
                                {"system_clock", kTime},
                                {"thread_local", kThreads}};

constexpr Ban kTraps[] = {{"expected", "GCC 12 has none: use Result from base/result.h"},
                          {"format", "GCC 12 has none: use std::to_string or a string stream"},
                          {"print", "GCC 12 has none: use a string stream"},
                          {"ranges", "clang-tidy 14 cannot parse the views of libstdc++ 12: use <algorithm>"},
                          {"source_location", "clang-tidy 14 cannot parse it: pass __FILE__ and __LINE__"}};

constexpr std::string_view kProduct[] = {"base", "scheduler", "storage", "trainer", "elastic", "launcher"};

bool is_product(std::string_view folder) {
  return std::find(std::begin(kProduct), std::end(kProduct), folder) != std::end(kProduct);
}

// These may include the product and themselves.
bool is_user_of_product(std::string_view folder) { return folder == "tests" || folder == "bench"; }

std::string refusal(const Room& from, const Room& to) {
  if (to.kind == RoomKind::kAdapter) {
    return "only launcher may include the adapter " + std::string(to.name) +
           " (hint: use the abstract port, and let launcher pass the adapter in)";
  }
  return std::string(from.name) + " may not include " + std::string(to.name) +
         " (hint: pass the value in from launcher, or move what both need into a room that both may include)";
}

// Core files that act all the same. base/check.cpp speaks its last words before abort, lifeline_news.h is the one port
// that tells when something came, and checkpoints are written and committed behind the training's back, on threads.
constexpr std::string_view kActingFiles[] = {
    "base/check.cpp",
    "trainer/checkpoints/checkpoint_committer.cpp",
    "trainer/checkpoints/checkpoint_committer.h",
    "trainer/checkpoints/checkpoint_writer.cpp",
    "trainer/checkpoints/checkpoint_writer.h",
    "trainer/checkpoints/parallel.cpp",
    "trainer/wire/lifeline_news.h",
};

// A file without a room is one, too: a new folder is pure until the table says otherwise.
bool is_core(const SourceFile& file) {
  if (!is_product(file.folder()) || file.folder() == "launcher") return false;
  if (std::find(std::begin(kActingFiles), std::end(kActingFiles), file.path) != std::end(kActingFiles)) return false;
  const Room* room = room_of(file);
  return room == nullptr || room->kind == RoomKind::kCore;
}

bool starts_with_any(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](auto prefix) { return text.starts_with(prefix); });
}

bool is_at_home(const SourceFile& file, const Home& home) {
  const std::string_view path = file.path;
  return starts_with_any(path, home.places) ||
         (path.starts_with("tests/") && starts_with_any(path.substr(6), home.places));
}

// Every header of the standard library is a bare word, and no other header is.
bool is_standard(const Include& include) { return include.path.find_first_of("./") == std::string::npos; }

std::string in_brackets(const Include& include) { return "<" + include.path + ">"; }

std::string join(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : " or ") + std::string(word);
  return text;
}

bool contains_word(std::string_view line, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 || line[at] == '_');
  };
  std::size_t at = line.find(word);
  while (at != std::string_view::npos && (is_letter(at - 1) || is_letter(at + word.size())))
    at = line.find(word, at + 1);
  return at != std::string_view::npos;
}

Violations report_headers(const SourceFile& file, std::span<const Ban> bans, const std::string& why) {
  Violations violations;
  for (const Include& include : includes_of(file)) {
    for (const Ban& ban : bans) {
      if (!include.angled || include.path != ban.name) continue;
      violations.push_back(
          {file.path, include.line, in_brackets(include) + " " + why + " (hint: " + std::string(ban.hint) + ")"});
    }
  }
  return violations;
}

}  // namespace

Violations check_include_graph(const SourceFile& file) {
  Violations violations;
  const bool is_user = is_user_of_product(file.folder());
  if (!file.is_cpp() || (!is_user && !is_product(file.folder()))) return violations;
  const Room* from = room_of(file);
  if (from == nullptr && !is_user) {
    return {{file.path, 0,
             std::string(file.directory()) +
                 " is no room (hint: move the file into one, or give its folder a row in tests/tidy/rooms.cpp)"}};
  }
  for (const Include& include : includes_of(file)) {
    if (include.angled) continue;
    const auto report = [&](const std::string& message) { violations.push_back({file.path, include.line, message}); };
    const SourceFile target{include.path, {}};
    const Room* to = room_of(target);
    if (is_user_of_product(target.folder())) {
      if (target.folder() != file.folder()) {
        report(std::string(from == nullptr ? file.folder() : from->name) + " may not include " +
               std::string(target.folder()) + " (hint: move what both need into the product)");
      }
    } else if (to == nullptr) {
      report("\"" + include.path + "\" does not start with a room of the tree (hint: write includes from the root)");
    } else if (from != nullptr && from != to && !from->may_include.contains(to->name)) {
      report(refusal(*from, *to));
    }
  }
  return violations;
}

Violations check_foreign_headers(const SourceFile& file) {
  Violations violations;
  if (!file.is_cpp()) return violations;
  for (const Include& include : includes_of(file)) {
    if (!include.angled || is_standard(include)) continue;
    const auto home = std::find_if(homes().begin(), homes().end(),
                                   [&](const Home& row) { return starts_with_any(include.path, row.headers); });
    if (home == homes().end()) {
      violations.push_back({file.path, include.line,
                            in_brackets(include) + " is not known here (hint: a C header has a C++ twin such as " +
                                "<cstdio>; a new library gets a folder of its own and a row in " +
                                "tests/tidy/include_rules.cpp)"});
    } else if (!is_at_home(file, *home)) {
      violations.push_back({file.path, include.line,
                            in_brackets(include) + " may be included in " + join(home->places) +
                                " only (hint: call a function declared there instead)"});
    }
  }
  return violations;
}

Violations check_core_purity(const SourceFile& file) {
  Violations violations;
  if (!file.is_cpp() || !is_core(file)) return violations;
  violations = report_headers(file, kImpureHeaders, "has no place in a core file");
  int number = 0;
  const std::string code = code_only(file.text);
  for (const std::string_view line : lines_of(code)) {
    ++number;
    for (const Ban& ban : kImpureWords) {
      if (!contains_word(line, ban.name)) continue;
      violations.push_back(
          {file.path, number,
           std::string(ban.name) + " has no place in a core file (hint: " + std::string(ban.hint) + ")"});
    }
  }
  return violations;
}

Violations check_toolchain_traps(const SourceFile& file) {
  if (!file.is_cpp() || !is_product(file.folder())) return {};
  return report_headers(file, kTraps, "does not work with the compiler and linter of Debian 12");
}

}  // namespace everstep::tidy

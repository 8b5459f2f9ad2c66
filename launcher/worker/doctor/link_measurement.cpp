#include "launcher/worker/doctor/link_measurement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "launcher/cli/host.h"
#include "launcher/cli/json_number.h"
#include "launcher/job/lineage.h"
#include "launcher/worker/runtime_directory.h"
#include "trainer/nccl/nccl_api.h"
#include "trainer/nccl/nccl_transport.h"
#include "trainer/socket/socket_connector.h"
#include "trainer/staging/staged_transport.h"
#include "trainer/update/host_memory.h"

namespace everstep::launcher {
namespace {

using trainer::Buffer;
using trainer::Channel;
using trainer::FrameHeader;
using trainer::Transport;

constexpr std::chrono::seconds kLimit{30};
constexpr std::size_t kSmall = 4096;
constexpr int kSmallRounds = 200;
constexpr std::size_t kLarge = std::size_t{8} << 20;
constexpr int kLargeFrames = 24;
constexpr int kAhead = 4;

// Bytes that no other frame has.
void draw(const Buffer& bytes, std::uint64_t number) {
  const RandomStream stream{number, 1};
  const auto words = bytes.as<std::uint64_t>();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = stream.bits(i);
}

// One worker of two. What it sends lies where it computes, and so does what comes.
class LinkEnd {
 public:
  LinkEnd(Transport& transport, trainer::DeviceMemory& memory, std::uint64_t lineage)
      : transport_(transport), memory_(memory), peer_(1 - transport.worker()), lineage_(lineage) {}

  Result<LinkFigures> run() {
    LinkFigures figures;
    EVERSTEP_TRY(measure_latency(figures));
    EVERSTEP_TRY(measure_stream(figures));
    EVERSTEP_TRY(transport_.flush(kLimit));
    return figures;
  }

 private:
  bool is_first() const { return transport_.worker() == 0; }

  FrameHeader header_of(std::int64_t number, std::size_t bytes) const {
    FrameHeader header;
    header.lineage = lineage_;
    header.window = number;
    header.length = bytes;
    return header;
  }

  Status take(trainer::ReceiveId receive) {
    const auto received = transport_.wait(receive, kLimit);
    return received ? Status() : received.error();
  }

  // The first one sends, the other one sends it back.
  Status measure_latency(LinkFigures& figures) {
    const Buffer out = memory_.allocate_zeroed(kSmall);
    const Buffer in = memory_.allocate_zeroed(kSmall);
    std::vector<Tick> times;
    for (int round = 0; round < kSmallRounds; ++round) {
      const FrameHeader header = header_of(round, kSmall);
      const auto receive = transport_.post_receive(peer_, Channel::kTensors, header, in);
      const Tick begin = monotonic_now();
      if (is_first()) transport_.send(peer_, Channel::kTensors, header, out);
      EVERSTEP_TRY(take(receive));
      wait_for(memory_.mark());
      times.push_back((monotonic_now() - begin) / 2);
      if (!is_first()) transport_.send(peer_, Channel::kTensors, header, out);
    }
    std::nth_element(times.begin(), times.begin() + kSmallRounds / 2, times.end());
    figures.latency_us = static_cast<double>(times[kSmallRounds / 2]) / 1e3;
    return {};
  }

  // The first one sends as fast as the other one takes, which tells what it got last.
  Status measure_stream(LinkFigures& figures) {
    const Buffer drawn = memory_.allocate_pinned(kLarge);
    draw(drawn, 7);
    const FrameHeader last = header_of(-1, kLarge);
    if (!is_first()) return answer_stream(last);
    const Buffer out = memory_.allocate_scratch(kLarge);
    memory_.copy(out, drawn);
    const Buffer back = memory_.allocate_zeroed(kLarge);
    const auto end = transport_.post_receive(peer_, Channel::kTensors, last, back);
    wait_for(memory_.mark());
    const Tick begin = monotonic_now();
    for (int i = 0; i < kLargeFrames; ++i) transport_.send(peer_, Channel::kTensors, header_of(i, kLarge), out);
    EVERSTEP_TRY(take(end));
    wait_for(memory_.mark());
    // One more comes back.
    figures.gb_per_s = static_cast<double>(kLarge) * (kLargeFrames + 1) / static_cast<double>(monotonic_now() - begin);
    const Buffer came = memory_.fetch(back);
    figures.is_intact = std::memcmp(came.data, drawn.data, kLarge) == 0;
    return {};
  }

  Status answer_stream(const FrameHeader& last) {
    std::array<Buffer, kAhead> into;
    for (Buffer& buffer : into) buffer = memory_.allocate_zeroed(kLarge);
    std::array<trainer::ReceiveId, kAhead> posted{};
    for (int i = 0; i < kLargeFrames + kAhead; ++i) {
      const std::size_t place = static_cast<std::size_t>(i) % kAhead;
      if (i >= kAhead) EVERSTEP_TRY(take(posted[place]));
      if (i >= kLargeFrames) continue;
      posted[place] = transport_.post_receive(peer_, Channel::kTensors, header_of(i, kLarge), into[place]);
    }
    transport_.send(peer_, Channel::kTensors, last, into[(kLargeFrames - 1) % kAhead]);
    return {};
  }

  Transport& transport_;
  trainer::DeviceMemory& memory_;
  int peer_;
  std::uint64_t lineage_;
};

// Over the links between devices where these have been opened, else over the wire between hosts.
Result<LinkFigures> run_end(Transport& transport, const trainer::PeerRoster& roster, const WorkerDevice& device) {
  const auto memory = device.make_memory();
  if (memory == nullptr) return LinkEnd(transport, trainer::host_memory(), roster.lineage).run();
  const auto links = device.connect(transport, {roster.lineage, roster.generation, roster.worker, 2, 1});
  if (!links) return links.error();
  const auto staged = make_staged_transport(transport, *memory);
  if (*links == nullptr) return LinkEnd(*staged, *memory, roster.lineage).run();
  if ((*links)->peers().empty()) {
    return Error{ErrorCode::kUnavailable, "NCCL makes no link between them", "NCCL_DEBUG=INFO makes it say why"};
  }
  const auto linked =
      make_nccl_transport(**links, transport, *staged, {memory->compute_stream(), roster.lineage, roster.generation});
  return LinkEnd(*linked, *memory, roster.lineage).run();
}

Result<LinkFigures> connect_and_run(trainer::PeerConnector& connector, const trainer::PeerRoster& roster,
                                    const WorkerDevice& device) {
  auto connected = connector.connect(roster, kLimit);
  if (!connected.connection) return connected.connection.error();
  Transport& transport = *connected.connection->transport;
  auto figures = run_end(transport, roster, device);
  if (!figures) {
    transport.leave();
    return figures;
  }
  EVERSTEP_TRY(transport.close(kLimit));
  return figures;
}

// Two threads stand for the two workers.
Result<LinkFigures> over_sockets(const trainer::SocketOptions& options, const WorkerDevice& from,
                                 const WorkerDevice& to) {
  std::vector<std::unique_ptr<trainer::PeerConnector>> connectors;
  trainer::PeerRoster roster;
  roster.lineage = options.lineage;
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    auto listening = trainer::listen_for_peers(options);
    if (!listening) return listening.error();
    connectors.push_back(std::move(*listening));
    roster.members.push_back({WorkerId{{options.lineage, worker}}, connectors.back()->address()});
  }
  Result<LinkFigures> other = LinkFigures();
  trainer::PeerRoster of_other = roster;
  of_other.worker = 1;
  std::thread thread([&] { other = connect_and_run(*connectors[1], of_other, to); });
  auto figures = connect_and_run(*connectors[0], roster, from);
  thread.join();
  return other ? figures : Result<LinkFigures>(other.error());
}

Result<LinkFigures> over_unix(const WorkerDevice& from, const WorkerDevice& to) {
  trainer::SocketOptions options;
  options.lineage = random_lineage();
  options.runtime_directory = runtime_directory();
  return over_sockets(options, from, to);
}

Result<LinkFigures> over_tls(const WorkerDevice& from, const WorkerDevice& to) {
  trainer::SocketOptions options;
  options.lineage = random_lineage();
  options.tcp.emplace();
  options.seal = [secret = hex_text(random_lineage())](std::string_view text) {
    return trainer::unkeyed_seal(secret + std::string(text));
  };
  return over_sockets(options, from, to);
}

Status is_everywhere(const std::vector<WorkerDevice>& /*devices*/) { return {}; }

Status find_nccl_between(const std::vector<WorkerDevice>& devices) {
  if (devices.front().name().is_host()) return not_found("NCCL is for GPUs");
  if (devices.size() == 1) return not_found("NCCL links GPUs, and there is one");
  const auto api = trainer::find_nccl(devices.front().name().kind);
  return api ? Status() : api.error();
}

Status open_nccl(WorkerDevice& device) {
  const Status opened = device.open_transport(kNcclTransport, kNcclTransport);
  if (opened) return {};
  return Error{opened.error().code, device.text() + ": " + opened.error().message, opened.error().hint};
}

Result<LinkFigures> over_nccl(const WorkerDevice& from, const WorkerDevice& to) {
  WorkerDevice first = from;
  WorkerDevice second = to;
  EVERSTEP_TRY(open_nccl(first));
  EVERSTEP_TRY(open_nccl(second));
  return over_unix(first, second);
}

}  // namespace

const std::vector<LinkKind>& link_kinds() {
  static const std::vector<LinkKind> kinds{
      {"unix", is_everywhere, over_unix}, {"tls", is_everywhere, over_tls}, {"nccl", find_nccl_between, over_nccl}};
  return kinds;
}

storage::Json measure_links(const std::vector<WorkerDevice>& devices) {
  storage::Json links = storage::Json::array();
  storage::Json not_checked = storage::Json::array();
  storage::Json failed = storage::Json::array();
  for (const LinkKind& kind : link_kinds()) {
    if (const Status found = kind.find(devices); !found) {
      not_checked.append(storage::Json::object().set("kind", kind.name).set("reason", found.error().line()));
      continue;
    }
    // Of two devices there is one pair.
    const std::size_t pairs = devices.size() == 2 ? 1 : devices.size();
    for (std::size_t i = 0; i < pairs; ++i) {
      const WorkerDevice& from = devices[i];
      const WorkerDevice& to = devices[(i + 1) % devices.size()];
      storage::Json one = storage::Json::object().set("kind", kind.name);
      const auto figures = kind.measure(from, to);
      one.set("from", from.text()).set("to", to.text());
      if (!figures) {
        failed.append(std::move(one.set("reason", figures.error().line())));
        continue;
      }
      one.set("gb_per_s", finite_or_null(figures->gb_per_s)).set("latency_us", finite_or_null(figures->latency_us));
      links.append(std::move(one.set("intact", figures->is_intact)));
    }
  }
  storage::Json answer = storage::Json::object().set("links", std::move(links));
  return answer.set("not_checked", std::move(not_checked)).set("failed", std::move(failed));
}

}  // namespace everstep::launcher

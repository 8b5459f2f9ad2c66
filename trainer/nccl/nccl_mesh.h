#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/nccl/nccl_device.h"
#include "trainer/nccl/nccl_link.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// The links of one worker with its peers in one generation. A pair has links both ways or none; then its frames travel
// over the host's wire.
class NcclMesh {
 public:
  struct Pair {
    explicit Pair(NcclDevice& device) : out(device, NcclLink::End::kSending), in(device, NcclLink::End::kReceiving) {}
    NcclLink out;
    NcclLink in;
  };

  NcclMesh() = default;  // without any link
  explicit NcclMesh(std::shared_ptr<NcclDevice> device) : device_(std::move(device)) {}
  NcclMesh(const NcclMesh&) = delete;
  NcclMesh& operator=(const NcclMesh&) = delete;
  ~NcclMesh() { end(NcclDevice::How::kAtOnce); }

  NcclDevice& device() const { return *device_; }  // if there are links
  Pair* with(int peer);                            // nullptr: none
  std::vector<int> peers() const;                  // that have links, ascending

  Pair& add(int peer);
  void drop(int peer);                      // ends its links
  std::vector<NcclRemains> take(int peer);  // the same for the caller to end them

  // Ends all links beside the caller. In order if none is at work.
  void end(NcclDevice::How how);

 private:
  std::shared_ptr<NcclDevice> device_;
  std::map<int, std::unique_ptr<Pair>> pairs_;
};

struct NcclMeshRequest {
  std::uint64_t lineage = 0;
  Generation generation{};
  int workers = 0;              // of the plan; whoever comes behind them only hands over state, and has no links
  std::vector<int> peers;       // with whom to have links; they ask for the same
  std::string why_none{};       // why this worker has no NCCL, if it has none, for the logs of all
  std::set<int> unreachable{};  // of them, those with whom it is not tried again
  // For NCCL, from when all workers have said that they have it. They have twice as long to say so.
  std::chrono::milliseconds timeout{10'000};
  // Whether anybody still wants it; asked now and then.
  std::function<bool()> is_wanted = [] { return true; };
  // With this peer it took too long, as where a firewall is between the two.
  std::function<void(int peer)> on_unreachable = [](int) {};
  // Why nobody has links, for the log: this worker of the plan, or more than one, has no NCCL, or another version.
  std::function<void(int worker, const std::string& why)> on_without = [](int, const std::string&) {};
  // Why a pair has none.
  std::function<void(int peer, const std::string& why)> on_missing = [](int, const std::string&) {};
};

// Makes the links of one generation, while another one may still train: communicators, and their first transfers, so
// that nothing is left to be allocated later. All workers of the plan do it at the same time, over their new
// connection, which nobody else uses yet. If one of them has no NCCL (`device` is nothing), or not the version of the
// others, nobody has links, and all know it: one way for all tensors of a plan, whose speed does not depend on who sits
// where. A pair that does not get its links made in time has none, and both sides know it. The error is that of `host`;
// kCancelled: nobody wants it.
Result<std::unique_ptr<NcclMesh>> connect_nccl(std::shared_ptr<NcclDevice> device, Transport& host,
                                               const NcclMeshRequest& request);

// With which workers one of a plan of `width` groups of `depth` workers has links: those of its group, and those in its
// place in the other groups.
std::vector<int> nccl_peers(int worker, int depth, int width);

}  // namespace everstep::trainer

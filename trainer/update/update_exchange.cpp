#include "trainer/update/update_exchange.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace everstep::trainer {
namespace {

using scheduler::Op;
using scheduler::OpKind;
using scheduler::Schedule;

Result<std::vector<UpdateRecord>> decode_all(const std::vector<RecordCapacity>& capacities, const Buffer& all) {
  std::vector<UpdateRecord> records;
  std::size_t offset = 0;
  for (const RecordCapacity& capacity : capacities) {
    auto record = decode_record(capacity, all.part(offset, capacity.bytes()).as<const std::byte>());
    if (!record) return record.error();
    records.push_back(*std::move(record));
    offset += capacity.bytes();
  }
  return records;
}

// The first worker receives each record straight into its place among all.
Status gather(Channel channel, Transport& transport, FrameHeader header, const std::vector<RecordCapacity>& capacities,
              const Buffer& all, std::chrono::milliseconds timeout) {
  std::vector<ReceiveId> receives;
  std::size_t offset = capacities[0].bytes();
  for (std::size_t next = 1; next < capacities.size(); ++next) {
    header.length = capacities[next].bytes();
    receives.push_back(transport.post_receive(transport.worker() + static_cast<int>(next), channel, header,
                                              all.part(offset, capacities[next].bytes())));
    offset += capacities[next].bytes();
  }
  for (const ReceiveId receive : receives) EVERSTEP_TRY(transport.wait(receive, timeout));
  return {};
}

int losses_per_window(const Schedule& schedule, int worker) {
  const std::vector<Op>& ops = schedule.workers[worker];
  const int last_stage = schedule.placement.stages() - 1;
  int most = 0;
  for (const scheduler::WindowSlice& slice : schedule.slices) {
    const auto count = std::count_if(ops.begin(), ops.end(), [&](const Op& op) {
      return op.kind == OpKind::kForward && op.stage == last_stage && op.window == slice.window;
    });
    most = std::max(most, static_cast<int>(count));
  }
  return most;
}

}  // namespace

Result<std::vector<UpdateRecord>> exchange_records(Transport& transport, const FrameHeader& header,
                                                   const std::vector<RecordCapacity>& capacities,
                                                   const UpdateRecord& mine, std::chrono::milliseconds timeout) {
  return exchange_among(0, Channel::kRecords, transport, header, capacities, mine, timeout);
}

Result<std::vector<UpdateRecord>> exchange_among(int first, Channel channel, Transport& transport,
                                                 const FrameHeader& header,
                                                 const std::vector<RecordCapacity>& capacities,
                                                 const UpdateRecord& mine, std::chrono::milliseconds timeout) {
  std::size_t total = 0;
  for (const RecordCapacity& capacity : capacities) total += capacity.bytes();
  const RecordCapacity& own = capacities[transport.worker() - first];
  FrameHeader record = header;
  record.kind = FrameKind::kRecord;
  FrameHeader records = header;
  records.kind = FrameKind::kRecords;
  records.length = total;
  const Buffer all = allocate_scratch(total);
  if (transport.worker() == first) {
    encode_record(mine, own, all.part(0, own.bytes()).as<std::byte>());
    EVERSTEP_TRY(gather(channel, transport, record, capacities, all, timeout));
    for (std::size_t next = 1; next < capacities.size(); ++next) {
      transport.send(first + static_cast<int>(next), channel, records, all);
    }
  } else {
    const ReceiveId receive = transport.post_receive(first, channel, records, all);
    const Buffer bytes = allocate_scratch(own.bytes());
    encode_record(mine, own, bytes.as<std::byte>());
    record.length = own.bytes();
    transport.send(first, channel, record, bytes);
    EVERSTEP_TRY(transport.wait(receive, timeout));
  }
  return decode_all(capacities, all);
}

std::vector<RecordCapacity> record_capacities(const Schedule& schedule, const std::vector<StageLayout>& layouts,
                                              bool compares_replicas) {
  std::vector<RecordCapacity> capacities;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    RecordCapacity capacity;
    const std::vector<int> stages = schedule.placement.stages_on(schedule.device_of(worker));
    if (compares_replicas) capacity.weight_hashes = stages.size();
    capacity.stage_times = stages.size();
    for (const int stage : stages) {
      if (schedule.placement.owner_of(stage) != schedule.device_of(worker)) continue;
      capacity.sums_of_squares += layouts[stage].entries.size();
    }
    capacity.losses = losses_per_window(schedule, worker);
    capacities.push_back(capacity);
  }
  return capacities;
}

UpdateDecision decide_update(const Schedule& schedule, const std::vector<StageLayout>& layouts,
                             const std::vector<UpdateRecord>& records) {
  UpdateDecision decision;
  Tick busy = 0;
  Tick elapsed = 0;
  for (const UpdateRecord& record : records) {
    decision.finite = decision.finite && record.finite;
    decision.stop = std::max(decision.stop, record.stop);
    decision.all_idle = decision.all_idle && record.writer_idle;
    busy += record.busy;
    decision.computed.push_back(record.busy);
    decision.stage_times.push_back(record.stage_times);
    elapsed += record.elapsed;
  }
  decision.busy = elapsed > 0 ? static_cast<double>(busy) / static_cast<double>(elapsed) : 0;
  decision.losses = losses_in_order(records);
  decision.loss = mean_of(decision.losses);

  // Group 0 speaks for all: its owners hold the totals. Stage by stage, entry by entry, whatever the cut; the head's
  // copy of the tied embedding is the same parameter and counts once.
  double sum = 0;
  std::vector<std::size_t> next_entry(schedule.depth(), 0);
  for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
    const int owner = schedule.placement.owner_of(stage);
    bool seen_tied = stage > 0;
    for (const StageLayout::Entry& entry : layouts[stage].entries) {
      const double square = records[owner].sums_of_squares[next_entry[owner]++];
      if (entry.parameter.tied && std::exchange(seen_tied, true)) continue;
      sum += square;
    }
  }
  decision.gradient_norm = std::sqrt(sum);
  decision.finite = decision.finite && std::isfinite(decision.gradient_norm) && std::isfinite(decision.loss);
  return decision;
}

std::vector<double> losses_in_order(const std::vector<UpdateRecord>& records) {
  std::vector<MinibatchLoss> losses;
  for (const UpdateRecord& record : records) losses.insert(losses.end(), record.losses.begin(), record.losses.end());
  std::sort(losses.begin(), losses.end(),
            [](const MinibatchLoss& a, const MinibatchLoss& b) { return a.minibatch < b.minibatch; });
  std::vector<double> ordered;
  ordered.reserve(losses.size());
  for (const MinibatchLoss& loss : losses) ordered.push_back(loss.loss);
  return ordered;
}

double mean_of(const std::vector<double>& losses) {
  if (losses.empty()) return 0;
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());
}

double clip_scale(double norm, double limit) {
  // As torch's clip_grad_norm_ does, so that curves can be compared.
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

}  // namespace everstep::trainer

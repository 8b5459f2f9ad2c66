#include "trainer/recovery/group_stop.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::size_t kWordBytes = 40;

void encode_word(const GroupWord& word, const Buffer& into) {
  WireWriter writer;
  writer.put(std::int64_t{word.may_keep});
  writer.put(word.window);
  writer.put(word.started);
  writer.put(word.bound);
  writer.put(word.round_time);
  std::memcpy(into.data, writer.bytes().data(), kWordBytes);
}

GroupWord decode_word(const Buffer& bytes) {
  WireReader reader(bytes.as<const std::byte>());
  GroupWord word;
  word.may_keep = reader.get<std::int64_t>() == 1;
  reader.get(word.window);
  reader.get(word.started);
  reader.get(word.bound);
  reader.get(word.round_time);
  return word;
}

FrameHeader header_of(FrameHeader header, FrameKind kind, std::size_t length) {
  header.kind = kind;
  header.length = length;
  return header;
}

Buffer word_of(const Buffer& all, int member) {
  return all.part(static_cast<std::size_t>(member) * kWordBytes, kWordBytes);
}

void tell_first(Transport& transport, const GroupMembers& group, const FrameHeader& header, const GroupWord& mine) {
  const Buffer bytes = allocate_scratch(kWordBytes);
  encode_word(mine, bytes);
  transport.send(group.first, Channel::kSurvivors, header_of(header, FrameKind::kRecord, kWordBytes), bytes);
}

void tell_others(Transport& transport, const GroupMembers& group, const FrameHeader& header, const Buffer& all) {
  for (int member = 1; member < group.count; ++member) {
    transport.send(group.first + member, Channel::kSurvivors, header_of(header, FrameKind::kRecords, all.size), all);
  }
}

}  // namespace

std::optional<std::int64_t> agreed_stop(const std::vector<GroupWord>& words, const SuperRounds& rounds,
                                        int worth_waiting, Tick limit) {
  std::int64_t stop = -1;
  std::int64_t furthest_behind = words.front().started;
  Tick round_time = 0;
  for (const GroupWord& word : words) {
    if (!word.may_keep || word.window != words.front().window) return std::nullopt;
    stop = std::max(stop, word.bound);
    furthest_behind = std::min(furthest_behind, word.started);
    round_time = std::max(round_time, word.round_time);
  }
  if (stop < 0 || rounds.place_of(stop).window != words.front().window) return std::nullopt;
  const std::int64_t rounds_to_go = stop - furthest_behind + 1;
  const bool is_near = rounds_to_go <= worth_waiting || rounds_to_go * round_time <= limit;
  return is_near ? std::optional(stop) : std::nullopt;
}

std::vector<int> GroupMembers::all() const {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Result<std::vector<GroupWord>> exchange_words(Transport& transport, const GroupMembers& group, FrameHeader header,
                                              const GroupWord& mine, std::chrono::milliseconds timeout) {
  const Buffer all = allocate_zeroed(static_cast<std::size_t>(group.count) * kWordBytes);
  if (transport.worker() == group.first) {
    encode_word(mine, word_of(all, 0));
    std::vector<ReceiveId> receives;
    for (int member = 1; member < group.count; ++member) {
      receives.push_back(transport.post_receive(group.first + member, Channel::kSurvivors,
                                                header_of(header, FrameKind::kRecord, kWordBytes),
                                                word_of(all, member)));
    }
    for (const ReceiveId receive : receives) EVERSTEP_TRY(transport.wait(receive, timeout));
    tell_others(transport, group, header, all);
  } else {
    const ReceiveId receive =
        transport.post_receive(group.first, Channel::kSurvivors, header_of(header, FrameKind::kRecords, all.size), all);
    tell_first(transport, group, header, mine);
    EVERSTEP_TRY(transport.wait(receive, timeout));
  }
  std::vector<GroupWord> words;
  for (int member = 0; member < group.count; ++member) words.push_back(decode_word(word_of(all, member)));
  return words;
}

Status acknowledge(Transport& transport, const GroupMembers& group, FrameHeader header,
                   std::chrono::milliseconds timeout) {
  header = header_of(header, FrameKind::kRecord, 0);
  if (transport.worker() != group.first) {
    transport.send(group.first, Channel::kSurvivors, header, {});
    return {};
  }
  for (int member = 1; member < group.count; ++member) {
    const ReceiveId receive = transport.post_receive(group.first + member, Channel::kSurvivors, header, {});
    EVERSTEP_TRY(transport.wait(receive, timeout));
  }
  return {};
}

void refuse(Transport& transport, const GroupMembers& group, FrameHeader header) {
  if (transport.worker() != group.first) return tell_first(transport, group, header, {});
  tell_others(transport, group, header, allocate_zeroed(static_cast<std::size_t>(group.count) * kWordBytes));
}

}  // namespace everstep::trainer

#include "trainer/recovery/resume_wire.h"

#include <bit>
#include <cstring>
#include <utility>

#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::uint32_t kResumeFormat = 4;
constexpr std::uint64_t kLargest = std::uint64_t{256} << 20;

// One list of fields for both directions: `visit` writes or reads a number, a flag, a real, a text or a list.
void visit_fields(auto& history, auto& visit) requires requires { history.skipped; }
{
  visit.number(history.window);
  visit.number(history.first);
  visit.number(history.end);
  visit.flag(history.flushed);
  visit.flag(history.skipped);
  visit.number(history.generation.value);
  visit.text(history.plan);
  visit.list(history.losses, [&](auto& loss) { visit.real(loss); });
  visit.list(history.left_out, [&](auto& minibatch) { visit.number(minibatch); });
  visit.real(history.norm_limit);
  visit.flag(history.provisional);
}

void visit_fields(auto& resume, auto& visit) requires requires { resume.applied; }
{
  visit.number(resume.position.value);
  visit.number(resume.version.value);
  visit.number(resume.applied);
  visit.number(resume.skipped_in_a_row);
  visit.real(resume.clip_scale);
  visit.flag(resume.finite);
  visit.list(resume.losses, [&](auto& loss) {
    visit.number(loss.minibatch);
    visit.real(loss.loss);
  });
  visit.list(resume.history, [&](auto& entry) { visit_fields(entry, visit); });
  visit.list(resume.in_sums, [&](auto& entry) { visit_fields(entry, visit); });
}

class FieldWriter {
 public:
  void number(auto value) { writer_.put(value); }
  void flag(bool value) { writer_.put(std::uint8_t{value}); }
  void real(double value) { writer_.put(std::bit_cast<std::uint64_t>(value)); }
  void text(const std::string& value) { writer_.put_text(value); }
  void list(const auto& values, auto visit) {
    writer_.put(std::uint64_t{values.size()});
    for (const auto& value : values) visit(value);
  }
  WireWriter& writer() { return writer_; }

 private:
  WireWriter writer_;
};

class FieldReader {
 public:
  explicit FieldReader(WireReader& reader) : reader_(reader) {}

  void number(auto& value) { reader_.get(value); }
  void flag(bool& value) { value = reader_.get<std::uint8_t>() == 1; }
  void real(double& value) { value = std::bit_cast<double>(reader_.get<std::uint64_t>()); }
  void text(std::string& value) { value = reader_.get_text(); }
  // Grows with what is really there, whatever number the bytes claim.
  void list(auto& values, auto visit) {
    for (auto left = reader_.get<std::uint64_t>(); left > 0 && reader_.ok(); --left) visit(values.emplace_back());
  }

 private:
  WireReader& reader_;
};

void send_record(Transport& transport, int to, FrameHeader header, FrameKind kind, const Buffer& bytes) {
  header.kind = kind;
  header.length = bytes.size;
  transport.send(to, Channel::kRecords, header, bytes);
}

Status receive_record(Transport& transport, int from, FrameHeader header, FrameKind kind, const Buffer& into,
                      std::chrono::milliseconds timeout) {
  header.kind = kind;
  header.length = into.size;
  EVERSTEP_TRY(transport.wait(transport.post_receive(from, Channel::kRecords, header, into), timeout));
  return {};
}

Buffer encode_resume(const ResumePoint& resume) {
  EVERSTEP_CHECK(!resume.continues_live, "state in memory is drained");
  FieldWriter writer;
  writer.number(kResumeFormat);
  visit_fields(resume, writer);
  const auto bytes = writer.writer().bytes();
  Buffer buffer = allocate_scratch(bytes.size());
  std::memcpy(buffer.data, bytes.data(), bytes.size());
  return buffer;
}

Result<ResumePoint> decode_resume(const Buffer& bytes) {
  WireReader reader(bytes.as<const std::byte>());
  const auto format = reader.get<std::uint32_t>();
  ResumePoint resume;
  FieldReader fields(reader);
  visit_fields(resume, fields);
  if (format == kResumeFormat && reader.at_end()) return resume;
  return Error{ErrorCode::kInternal, "a place to go on from that no worker of this version writes",
               "do all workers run the same build?"};
}

}  // namespace

void send_resume(Transport& transport, int to, const FrameHeader& header, const ResumePoint& resume) {
  const Buffer body = encode_resume(resume);
  const Buffer size = allocate_scratch(sizeof(std::uint64_t));
  size.as<std::uint64_t>()[0] = body.size;
  send_record(transport, to, header, FrameKind::kStateSize, size);
  send_record(transport, to, header, FrameKind::kResume, body);
}

Result<ResumePoint> receive_resume(Transport& transport, int from, const FrameHeader& header,
                                   std::chrono::milliseconds timeout) {
  const Buffer size = allocate_zeroed(sizeof(std::uint64_t));
  EVERSTEP_TRY(receive_record(transport, from, header, FrameKind::kStateSize, size, timeout));
  const std::uint64_t bytes = size.as<std::uint64_t>()[0];
  if (bytes > kLargest) return Error{ErrorCode::kInternal, "a place to go on from that is too large", ""};
  const Buffer body = allocate_scratch(bytes);
  EVERSTEP_TRY(receive_record(transport, from, header, FrameKind::kResume, body, timeout));
  return decode_resume(body);
}

}  // namespace everstep::trainer

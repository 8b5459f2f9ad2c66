#pragma once

#include <array>
#include <streambuf>

namespace everstep::launcher {

// A buffer that writes to a descriptor it does not own and remembers why that failed: std::cout would only say that it
// did. After a failure it takes nothing more. Not for several threads at once.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int fd);

  // The errno of the first write that failed; 0 if none did. Flush before asking.
  int error() const { return error_; }

 protected:
  int_type overflow(int_type next) override;
  int sync() override;

 private:
  int fd_;
  int error_ = 0;
  std::array<char, 1 << 16> buffer_{};
};

}  // namespace everstep::launcher

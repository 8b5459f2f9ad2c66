#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "storage/file_system.h"

namespace everstep::storage {

// An open descriptor, closed with this.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

// The call's result; asks again when a signal came in between.
template <typename Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// `path` is for messages.
std::unique_ptr<WritableFile> make_writable_file(Descriptor descriptor, std::string path);

// Of an open file, which then holds this process's id. `path` is for messages.
Result<std::unique_ptr<Lock>> make_lock(Descriptor descriptor, const std::string& path);

// kDataLoss if it is no plain file.
Result<std::unique_ptr<ReadableFile>> make_readable_file(Descriptor descriptor, std::string path);

}  // namespace everstep::storage

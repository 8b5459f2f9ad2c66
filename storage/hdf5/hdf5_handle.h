#pragma once

#include <utility>

#include <hdf5.h>

namespace everstep::storage {

// An open object of libhdf5, closed at the end. Negative ids say that libhdf5 failed.
class Hdf5Handle final {
 public:
  using Close = herr_t (*)(hid_t);

  Hdf5Handle(hid_t id, Close how_to_close) : id_(id), close_(how_to_close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() { close(); }

  bool ok() const { return id_ >= 0; }
  hid_t id() const { return id_; }

  // Whether everything that was still to do at closing was done.
  bool close() { return id_ < 0 || close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_;
  Close close_;
};

// libhdf5 prints every error to stderr unless told not to, and a thread-safe build must be told on each thread.
class Hdf5Silence final {
 public:
  Hdf5Silence() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Hdf5Silence(const Hdf5Silence&) = delete;
  Hdf5Silence& operator=(const Hdf5Silence&) = delete;
  ~Hdf5Silence() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace everstep::storage

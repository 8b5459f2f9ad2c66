#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/model/device_kind.h"
#include "trainer/model/device_memory.h"

namespace everstep::trainer {

// Tells what there is to know about a kind of device, before anything below is called. Of other kinds that LibTorch
// has, their number alone is known.
void add_device_kind(DeviceKind kind);

// The devices of a kind that this process sees, by number; never none. The error is one line for people:
// kInvalidArgument if LibTorch knows no such kind or this build is without it, kNotFound if there is no device that
// can be used.
Result<std::vector<DeviceFacts>> list_devices(const std::string& kind);

// What of a device bits depend on, by name, for the provenance of checkpoints: its kind and name, its driver.
std::vector<std::pair<std::string, std::string>> device_provenance(const std::string& kind, int number);

// How much of its memory is taken, by whomever; nothing: nobody knows. A process takes some as soon as it asks.
std::optional<std::int64_t> device_bytes_in_use(const std::string& kind, int number);

// Settings of the process for bits that repeat: no TF32, no sums in bf16, no choice of kernels by their speed. Before
// anything is computed on a device.
void prepare_devices();

// Memory and streams of a device that list_devices() has. Belongs to the calling thread, which trains.
std::unique_ptr<DeviceMemory> make_device_memory(const std::string& kind, int number,
                                                 DeviceMemory::OnMark on_mark = {});

}  // namespace everstep::trainer

#include "launcher/worker/doctor/lone_stage.h"

#include "launcher/worker/doctor/measured_model.h"
#include "trainer/data/open_data.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

trainer::Buffer zeroed(trainer::DeviceMemory& memory, std::int64_t elements, std::size_t bytes_each) {
  return memory.allocate_zeroed(static_cast<std::size_t>(elements) * bytes_each);
}

}  // namespace

Result<std::unique_ptr<trainer::DataSource>> open_doctor_data(const std::filesystem::path& directory,
                                                              const trainer::ModelConfig& model) {
  return open_data({.path = (directory / kDoctorText).string(), .format = trainer::DataFormat::kText}, model);
}

LoneStage::LoneStage(const trainer::ModelConfig& model, int first_block, int end_block,
                     trainer::Accumulation accumulation, const trainer::DataSource& data, trainer::DeviceMemory& memory)
    : request_{model, layout_of(model, first_block, end_block), {}, accumulation, 1, &data, &memory} {
  const std::int64_t elements = request_.layout.elements;
  const std::size_t sum_bytes =
      accumulation == trainer::Accumulation::kFixedPoint ? sizeof(std::int64_t) : sizeof(float);
  request_.memory.weights = zeroed(memory, elements, model.weight_bytes());
  const trainer::Buffer sums = zeroed(memory, elements, sum_bytes);
  request_.memory.gradients = {sums, sums};
  const trainer::Buffer initial = memory.allocate_pinned(request_.memory.weights.size);
  initialise_weights(model, request_.layout, initial);
  memory.copy(request_.memory.weights, initial);
  wait_for(memory.mark());
  compute_ = make_torch_stage(request_);
}

}  // namespace everstep::launcher

#include "tests/accelerator/operators.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "tests/accelerator/fake_device.h"
#include "tests/accelerator/kernel_tensors.h"

namespace everstep::accelerator {
namespace {

using torch::jit::Stack;

// The sizes of their results depend on numbers, or the result is one: CUDA waits for them, too.
const std::set<std::string>& operators_that_wait() {
  static const std::set<std::string> names{"aten::_unique2",          "aten::equal",
                                           "aten::masked_select",     "aten::nonzero",
                                           "aten::unique_dim",        "aten::_local_scalar_dense",
                                           "aten::repeat_interleave", "aten::unique_consecutive"};
  return names;
}

bool writes(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool returns_views(const c10::FunctionSchema& schema) {
  return std::any_of(schema.returns().begin(), schema.returns().end(),
                     [](const auto& result) { return result.alias_info() != nullptr && !writes(result); });
}

// In place, with out=, or as the project's own operators, which return nothing.
bool makes_nothing(const c10::FunctionSchema& schema) {
  return std::all_of(schema.returns().begin(), schema.returns().end(), writes);
}

// One number may come from the host, as a kernel's parameter; it is read now.
at::Tensor parameter_of_kernel(const at::Tensor& tensor, const std::string& name) {
  TORCH_CHECK(tensor.dim() == 0, name, " takes tensors of the device, and one of the host's");
  at::Tensor copy = tensor.clone();
  copy.unsafeGetTensorImpl()->set_wrapped_number(tensor.unsafeGetTensorImpl()->is_wrapped_number());
  return copy;
}

// The arguments as its kernel sees them, and what it touches.
struct KernelCall {
  KernelCall(const c10::FunctionSchema& schema, Stack stack) : arguments(std::move(stack)) {
    change_tensors(arguments, 0, [&](const at::Tensor& tensor, std::size_t number) {
      const bool is_written = writes(schema.arguments()[number]);
      if (!on_device(tensor)) {
        TORCH_CHECK(!is_written, schema.name(), " would write to the host's memory");
        return parameter_of_kernel(tensor, schema.name());
      }
      add_accesses(tensor, is_written, accesses);
      const at::Tensor seen = seen_by_kernel(tensor);
      if (is_written) written.push_back({seen, seen.data_ptr(), seen.sizes().vec()});
      return seen;
    });
  }

  void run(const c10::OperatorHandle& op) {
    as_kernel([&] { op.callBoxed(&arguments); });
    for (const Written& each : written) {
      TORCH_CHECK(each.tensor.data_ptr() == each.data && each.tensor.sizes() == each.sizes, op.schema().name(),
                  " would give its output another size, when it is too late");
    }
  }

  struct Written {
    at::Tensor tensor;
    void* data;
    std::vector<std::int64_t> sizes;
  };

  Stack arguments;  // after run(): the results
  std::vector<Access> accesses;
  std::vector<Written> written;
};

// ---- shapes of results ----

std::int64_t dry_run_count = 0;
std::mutex shapes_mutex;

void describe(std::ostream& out, const at::Tensor& tensor) {
  out << tensor.scalar_type() << tensor.sizes() << tensor.strides() << tensor.device().type();
}

// Everything that shapes can depend on.
std::string signature_of(const c10::OperatorHandle& op, const Stack& arguments) {
  std::ostringstream out;
  out << op.operator_name();
  for (const c10::IValue& value : arguments) {
    out << ";";
    if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList()) {
      Stack one{value};
      change_tensors(one, 0, [&](const at::Tensor& tensor, std::size_t) {
        describe(out, tensor);
        return tensor;
      });
    } else {
      out << value;
    }
  }
  return out.str();
}

// Sizes, strides and types of what the CPU's kernel makes, as tensors without memory. Found by running it on zeros,
// which are valid indices: exact also where LibTorch has no function for shapes.
Stack shapes_of_results(const c10::OperatorHandle& op, Stack arguments) {
  static std::map<std::string, Stack> known;
  const std::string signature = signature_of(op, arguments);
  const std::lock_guard lock(shapes_mutex);
  const auto place = known.find(signature);
  if (place != known.end()) return place->second;
  ++dry_run_count;
  change_tensors(arguments, 0, [](const at::Tensor& tensor, std::size_t) {
    if (!on_device(tensor)) return tensor;
    return at::empty_strided(tensor.sizes(), tensor.strides(), at::TensorOptions(tensor.scalar_type())).zero_();
  });
  as_kernel([&] { op.callBoxed(&arguments); });
  change_tensors(arguments, 0, [](const at::Tensor& tensor, std::size_t) {
    return at::empty_strided(tensor.sizes(), tensor.strides(),
                             at::TensorOptions(tensor.scalar_type()).device(at::kMeta));
  });
  return known.emplace(signature, std::move(arguments)).first->second;
}

at::Tensor empty_on_device(const at::Tensor& like) {
  return at::empty_strided(like.sizes(), like.strides(), at::TensorOptions(like.scalar_type()).device(fake_device()));
}

// ---- running ----

std::vector<at::Tensor> tensors_of(Stack stack) {
  std::vector<at::Tensor> tensors;
  change_tensors(stack, 0, [&](const at::Tensor& tensor, std::size_t) {
    tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

void launch(const std::string& what, const std::vector<Access>& accesses, std::function<void()> kernel) {
  fake_accelerator().launch(current_stream(), what, accesses, std::move(kernel));
}

struct SpoiltOperator {
  std::string name;
  std::function<bool()> is_due;
};

SpoiltOperator& spoilt() {
  static SpoiltOperator one;
  return one;
}

void spoil_if_due(const std::string& name, const std::vector<Access>& accesses) {
  if (name != spoilt().name || !spoilt().is_due()) return;
  const auto written = std::find_if(accesses.begin(), accesses.end(), [](const Access& one) { return one.writes; });
  if (written != accesses.end()) *fake_accelerator().kernel_address(written->begin) ^= std::byte{1};
}

// An output that is still empty would be given its size by the kernel, too late.
void resize_empty_outputs(const c10::OperatorHandle& op, const Stack& arguments, Stack& outputs) {
  const auto is_empty = [](const c10::IValue& value) {
    return value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 0;
  };
  if (std::none_of(outputs.begin(), outputs.end(), is_empty)) return;
  const Stack shapes = shapes_of_results(op, arguments);
  for (std::size_t i = 0; i < std::min(shapes.size(), outputs.size()); ++i) {
    if (is_empty(outputs[i])) outputs[i].toTensor().resize_(shapes[i].toTensor().sizes());
  }
}

Stack run_in_place(const c10::OperatorHandle& op, const Stack& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  Stack outputs;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    if (writes(schema.arguments()[i])) outputs.push_back(arguments[i]);
  }
  if (!schema.returns().empty()) resize_empty_outputs(op, arguments, outputs);
  KernelCall call(schema, arguments);
  const std::vector<Access> accesses = call.accesses;
  launch(schema.name(), accesses, [op, accesses, call = std::move(call)]() mutable {
    call.run(op);
    spoil_if_due(op.schema().name(), accesses);
  });
  outputs.resize(schema.returns().size());
  return outputs;
}

Stack run_and_make(const c10::OperatorHandle& op, const Stack& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  Stack results = shapes_of_results(op, arguments);
  change_tensors(results, 0, [](const at::Tensor& shape, std::size_t) { return empty_on_device(shape); });
  KernelCall call(schema, arguments);
  std::vector<Access> accesses = call.accesses;
  std::vector<at::Tensor> targets;
  for (const at::Tensor& result : tensors_of(results)) {
    add_accesses(result, true, accesses);
    targets.push_back(seen_by_kernel(result));
  }
  launch(schema.name(), accesses, [op, call = std::move(call), targets = std::move(targets)]() mutable {
    call.run(op);
    const std::vector<at::Tensor> made = tensors_of(call.arguments);
    TORCH_CHECK(made.size() == targets.size(), op.schema().name(), " makes more or less than on zeros");
    as_kernel([&] {
      for (std::size_t i = 0; i < made.size(); ++i) {
        TORCH_CHECK(made[i].sizes() == targets[i].sizes(), op.schema().name(), " makes other sizes than on zeros");
        targets[i].copy_(made[i]);
      }
    });
  });
  return results;
}

Stack run_and_wait(const c10::OperatorHandle& op, const Stack& arguments) {
  const c10::FunctionSchema& schema = op.schema();
  const auto call = std::make_shared<KernelCall>(schema, arguments);
  launch(schema.name(), call->accesses, [op, call] { call->run(op); });
  fake_accelerator().synchronize(current_stream());
  Stack results = std::move(call->arguments);
  change_tensors(results, 0, [&](const at::Tensor& made, std::size_t) {
    at::Tensor result = empty_on_device(made);
    std::vector<Access> accesses;
    add_accesses(result, true, accesses);
    launch(schema.name(), accesses,
           [made, target = seen_by_kernel(result)] { as_kernel([&] { at::Tensor(target).copy_(made); }); });
    return result;
  });
  return results;
}

void run_on_stream(const c10::OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  TORCH_CHECK(!returns_views(schema), "the fake device has no views by ", schema.name());
  const auto begin = stack->end() - static_cast<std::ptrdiff_t>(schema.arguments().size());
  const Stack arguments(begin, stack->end());
  stack->erase(begin, stack->end());
  const auto run = operators_that_wait().contains(schema.name()) ? &run_and_wait
                   : makes_nothing(schema)                       ? &run_in_place
                                                                 : &run_and_make;
  for (c10::IValue& result : run(op, arguments)) stack->push_back(std::move(result));
}

// The CPU has a kernel of its own, and LibTorch would not use it here.
bool would_be_made_of_others(const c10::OperatorHandle& op) {
  const bool has_recipe = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
                          op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  return has_recipe && op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) && op.hasSchema() && !returns_views(op.schema());
}

}  // namespace

void register_operators() {
  static torch::Library all(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_stream>());
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (name.getNamespace() != "aten" || !op || !would_be_made_of_others(*op)) continue;
    aten.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&run_on_stream>());
  }
}

void spoil_operator(const std::string& name, std::function<bool()> is_due) { spoilt() = {name, std::move(is_due)}; }

std::int64_t dry_runs() {
  const std::lock_guard lock(shapes_mutex);
  return dry_run_count;
}

}  // namespace everstep::accelerator

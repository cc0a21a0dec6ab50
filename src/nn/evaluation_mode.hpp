// Layer 6, private. Scoped evaluation mode.
#pragma once

#include <utility>
#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// While an instance is alive, a module and its descendants are in evaluation mode; then the mode of each is restored.
class EvaluationMode {
  public:
    explicit EvaluationMode(Module& module) {
        save_modes(module);
        module.eval();
    }
    ~EvaluationMode() {
        // train() applies to descendants as well: restored from the outermost to the innermost.
        for (const auto& [module, training] : saved_modes_)
            if (module->training() != training) module->train(training);
    }
    EvaluationMode(const EvaluationMode&) = delete;
    EvaluationMode& operator=(const EvaluationMode&) = delete;

  private:
    void save_modes(Module& module) {
        saved_modes_.emplace_back(&module, module.training());
        for (const auto& [name, child] : module.children()) save_modes(*child);
    }

    std::vector<std::pair<Module*, bool>> saved_modes_;
};

}  // namespace declivity::nn

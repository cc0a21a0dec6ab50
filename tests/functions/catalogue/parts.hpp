// The parts of the catalogue, which cases.cpp concatenates. They are separate files to compile in parallel: together
// they take most of a minute.
#pragma once

#include <vector>

#include <tests/functions/catalogue/case.hpp>

namespace declivity::test::catalogue {

std::vector<Case> operator_catalogue();
std::vector<Case> layer_catalogue();
std::vector<Case> arrangement_catalogue();
std::vector<Case> attention_catalogue();
void add_convolutions(std::vector<Case>& all);
void add_windows(std::vector<Case>& all);
std::vector<Case> elementwise_catalogue();
std::vector<Case> fft_catalogue();
std::vector<Case> index_catalogue();
std::vector<Case> linalg_catalogue();
std::vector<Case> loss_catalogue();
std::vector<Case> norm_embedding_catalogue();
void add_pools(std::vector<Case>& all);
void add_adaptive_pools(std::vector<Case>& all);
void add_unpools(std::vector<Case>& all);
void add_products(std::vector<Case>& all);
void add_random_cases(std::vector<Case>& all);
std::vector<Case> recurrent_catalogue();
std::vector<Case> reduction_catalogue();
std::vector<Case> resize_catalogue();
std::vector<Case> shape_catalogue();
std::vector<Case> statistics_catalogue();
std::vector<Case> view_catalogue();
std::vector<Case> vision_catalogue();

}  // namespace declivity::test::catalogue

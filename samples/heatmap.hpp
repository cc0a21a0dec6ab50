// Heat maps for the samples: attention weights and confusion matrices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>

namespace samples {

using namespace declivity;

struct Heatmap {
    std::string title;
    std::string rows_label, columns_label;
    std::vector<std::string> rows, columns;  ///< one label per row and column
    std::vector<float> values;               ///< row-major, 0 (white) to 1 (dark)
};

inline io::Image8 draw_heatmap(const Heatmap& map) {
    constexpr int kCell = 26, kMargin = 8;
    constexpr io::Color kText{40, 40, 40};
    const auto longest = [](const std::vector<std::string>& names) {
        int width = 0;
        for (const std::string& name : names) width = std::max(width, io::Canvas::text_width(name));
        return width;
    };
    const int letters = io::Canvas::text_height(), left = longest(map.rows) + letters + 3 * kMargin;
    const int bottom = longest(map.columns) + letters + 3 * kMargin, top = letters + 3 * kMargin;
    const int width = kCell * static_cast<int>(map.columns.size()), height = kCell * static_cast<int>(map.rows.size());
    io::Canvas canvas(left + std::max(width, io::Canvas::text_width(map.title)) + 2 * kMargin, top + height + bottom,
                      {255, 255, 255});
    canvas.text(left, kMargin, map.title, kText);
    for (std::size_t r = 0; r < map.rows.size(); ++r) {
        const int y = top + static_cast<int>(r) * kCell;
        canvas.text(left - kMargin - io::Canvas::text_width(map.rows[r]), y + (kCell - letters) / 2, map.rows[r],
                    kText);
        for (std::size_t c = 0; c < map.columns.size(); ++c) {
            const float intensity = std::clamp(map.values[r * map.columns.size() + c], 0.0F, 1.0F);
            const auto shade = [intensity](int dark) {
                return static_cast<std::uint8_t>(255.0F + (static_cast<float>(dark) - 255.0F) * intensity);
            };
            canvas.fill_rect(left + static_cast<int>(c) * kCell, y, kCell - 1, kCell - 1,
                             {shade(20), shade(60), shade(140)});
        }
    }
    for (std::size_t c = 0; c < map.columns.size(); ++c)
        canvas.text_upwards(left + static_cast<int>(c) * kCell + (kCell - letters) / 2,
                            top + height + kMargin + io::Canvas::text_width(map.columns[c]), map.columns[c], kText);
    canvas.text(left, top + height + bottom - letters - kMargin, map.columns_label, kText);
    canvas.text_upwards(kMargin, top + io::Canvas::text_width(map.rows_label), map.rows_label, kText);
    return canvas.image();
}

}  // namespace samples

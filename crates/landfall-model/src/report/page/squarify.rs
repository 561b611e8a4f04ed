//! Squarified treemaps: rectangles in proportion to sizes, each as square as possible (Bruls,
//! Huizing, van Wijk: "Squarified Treemaps").

/// A rectangle in the units of the SVG.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

impl Rect {
    /// Removes `margin` on all four sides.
    pub(super) fn inset(self, margin: f64) -> Rect {
        Rect {
            x: self.x + margin,
            y: self.y + margin,
            w: (self.w - 2.0 * margin).max(0.0),
            h: (self.h - 2.0 * margin).max(0.0),
        }
    }

    /// Removes a strip of this height at the top.
    pub(super) fn below(self, height: f64) -> Rect {
        Rect {
            y: self.y + height,
            h: (self.h - height).max(0.0),
            ..self
        }
    }

    /// Removes a strip of this width on the left.
    fn right_of(self, width: f64) -> Rect {
        Rect {
            x: self.x + width,
            w: (self.w - width).max(0.0),
            ..self
        }
    }
}

/// Divides `area` among `sizes`, in their order. The rectangles are squarest if the sizes descend.
pub(super) fn squarify(sizes: &[u64], area: Rect) -> Vec<Rect> {
    let total: f64 = sizes.iter().map(|size| *size as f64).sum();
    let scale = if total > 0.0 {
        area.w * area.h / total
    } else {
        0.0
    };
    let areas: Vec<f64> = sizes.iter().map(|size| *size as f64 * scale).collect();
    let mut rects = Vec::with_capacity(sizes.len());
    let mut free = area;
    let mut row = 0..0;
    for index in 0..areas.len() {
        let side = free.w.min(free.h);
        let longer_row = row.start..index + 1;
        let is_better = row.is_empty()
            || worst_ratio(&areas[longer_row.clone()], side)
                <= worst_ratio(&areas[row.clone()], side);
        if is_better {
            row = longer_row;
        } else {
            free = place_row(&areas[row], free, &mut rects);
            row = index..index + 1;
        }
    }
    place_row(&areas[row], free, &mut rects);
    rects
}

/// The worst aspect ratio in a row of rectangles along `side`.
fn worst_ratio(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let side = side * side;
    let sum = sum * sum;
    let ratios = row
        .iter()
        .map(|area| (side * area / sum).max(sum / (side * area)));
    ratios.fold(0.0, f64::max)
}

/// Adds the rectangles of a row along the shorter side of `free`. Returns the free area next to it.
fn place_row(row: &[f64], free: Rect, rects: &mut Vec<Rect>) -> Rect {
    let sum: f64 = row.iter().sum();
    let is_wide = free.w >= free.h;
    let side = if is_wide { free.h } else { free.w };
    let thickness = if side > 0.0 { sum / side } else { 0.0 };
    let mut offset = 0.0;
    for area in row {
        let length = if thickness > 0.0 {
            area / thickness
        } else {
            0.0
        };
        rects.push(if is_wide {
            Rect {
                x: free.x,
                y: free.y + offset,
                w: thickness,
                h: length,
            }
        } else {
            Rect {
                x: free.x + offset,
                y: free.y,
                w: length,
                h: thickness,
            }
        });
        offset += length;
    }
    if is_wide {
        free.right_of(thickness)
    } else {
        free.below(thickness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Rect = Rect {
        x: 10.0,
        y: 20.0,
        w: 600.0,
        h: 400.0,
    };

    #[test]
    fn the_first_rectangles_equal_those_of_the_paper() {
        let rects = squarify(
            &[6, 6, 4, 3, 2, 2, 1],
            Rect {
                x: 0.0,
                y: 0.0,
                w: 6.0,
                h: 4.0,
            },
        );
        let near = |a: f64, b: f64| (a - b).abs() < 0.01;
        for (at, wanted) in [
            (0, [3.0, 2.0]),
            (1, [3.0, 2.0]),
            (2, [1.71, 2.33]),
            (3, [1.29, 2.33]),
        ] {
            assert!(
                near(rects[at].w, wanted[0]) && near(rects[at].h, wanted[1]),
                "{at}: {:?}",
                rects[at]
            );
        }
    }

    #[test]
    fn rectangles_fill_the_area_and_do_not_overlap() {
        for sizes in [
            vec![1],
            vec![5, 5],
            (1..200).rev().map(|n| n * n).collect(),
            vec![1_000_000, 1, 1],
        ] {
            let rects = squarify(&sizes, AREA);
            let total = sizes.iter().sum::<u64>() as f64;
            let whole = AREA.w * AREA.h;
            for (rect, size) in rects.iter().zip(&sizes) {
                assert!((rect.w * rect.h - *size as f64 / total * whole).abs() < 0.01);
                assert!(rect.x >= AREA.x - 1e-6 && rect.x + rect.w <= AREA.x + AREA.w + 1e-6);
                assert!(rect.y >= AREA.y - 1e-6 && rect.y + rect.h <= AREA.y + AREA.h + 1e-6);
            }
            for (at, a) in rects.iter().enumerate() {
                for b in &rects[at + 1..] {
                    let wide = (a.x + a.w).min(b.x + b.w) - a.x.max(b.x);
                    let high = (a.y + a.h).min(b.y + b.h) - a.y.max(b.y);
                    assert!(wide < 1e-6 || high < 1e-6, "{a:?} {b:?}");
                }
            }
        }
        assert!(squarify(&[], AREA).is_empty());
        assert!(
            squarify(&[0, 0], AREA)
                .iter()
                .all(|rect| rect.w * rect.h == 0.0)
        );
    }
}

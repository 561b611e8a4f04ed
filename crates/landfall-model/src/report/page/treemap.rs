//! A treemap: rectangles in proportion to sizes, each as square as may be (Bruls, Huizing, van
//! Wijk: "Squarified Treemaps").

/// A rectangle, in units of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

impl Rect {
    /// The same with this margin inside.
    pub(super) fn inset(self, margin: f64) -> Rect {
        Rect {
            x: self.x + margin,
            y: self.y + margin,
            w: (self.w - 2.0 * margin).max(0.0),
            h: (self.h - 2.0 * margin).max(0.0),
        }
    }

    /// What is left of it below a strip.
    pub(super) fn below(self, strip: f64) -> Rect {
        Rect {
            y: self.y + strip,
            h: (self.h - strip).max(0.0),
            ..self
        }
    }
}

/// A rectangle of `area` for each of `sizes`, which fall from the first to the last.
pub(super) fn squarify(sizes: &[u64], area: Rect) -> Vec<Rect> {
    let total: f64 = sizes.iter().map(|size| *size as f64).sum();
    let scale = if total > 0.0 {
        area.w * area.h / total
    } else {
        0.0
    };
    let areas: Vec<f64> = sizes.iter().map(|size| *size as f64 * scale).collect();
    let (mut rects, mut left, mut row) = (Vec::with_capacity(sizes.len()), area, 0..0);
    for at in 0..areas.len() {
        let side = left.w.min(left.h);
        let longer = row.start..at + 1;
        if !row.is_empty() && worst(&areas[longer.clone()], side) > worst(&areas[row.clone()], side)
        {
            left = lay(&areas[row.clone()], left, &mut rects);
            row = at..at + 1;
        } else {
            row = longer;
        }
    }
    lay(&areas[row], left, &mut rects);
    rects
}

/// How far from a square the rectangles of a row along `side` are.
fn worst(row: &[f64], side: f64) -> f64 {
    let sum: f64 = row.iter().sum();
    let (side, sum) = (side * side, sum * sum);
    let ratio = |area: &f64| (side * area / sum).max(sum / (side * area));
    row.iter().map(ratio).fold(0.0, f64::max)
}

/// Lays a row along the shorter side of `left`, and gives what is left then.
fn lay(row: &[f64], left: Rect, rects: &mut Vec<Rect>) -> Rect {
    let sum: f64 = row.iter().sum();
    let is_wide = left.w >= left.h;
    let side = if is_wide { left.h } else { left.w };
    let thick = if side > 0.0 { sum / side } else { 0.0 };
    let mut at = 0.0;
    for area in row {
        let long = if thick > 0.0 { area / thick } else { 0.0 };
        rects.push(match is_wide {
            true => Rect {
                x: left.x,
                y: left.y + at,
                w: thick,
                h: long,
            },
            false => Rect {
                x: left.x + at,
                y: left.y,
                w: long,
                h: thick,
            },
        });
        at += long;
    }
    match is_wide {
        true => Rect {
            x: left.x + thick,
            w: (left.w - thick).max(0.0),
            ..left
        },
        false => Rect {
            y: left.y + thick,
            h: (left.h - thick).max(0.0),
            ..left
        },
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
    fn the_rectangles_of_the_paper() {
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
    fn they_fill_the_area_and_do_not_overlap() {
        for sizes in [
            vec![1],
            vec![5, 5],
            (1..200).rev().map(|n| n * n).collect(),
            vec![1_000_000, 1, 1],
        ] {
            let rects = squarify(&sizes, AREA);
            let (total, whole) = (sizes.iter().sum::<u64>() as f64, AREA.w * AREA.h);
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

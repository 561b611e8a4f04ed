//! The treemap of the content: groups, items and blobs as rectangles. Blobs that several items use
//! are a group of their own.

use super::ItemContent;
use crate::{Digest, human_size, sum_sizes};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

pub(super) const AREA: Rect = Rect {
    x: 0.0,
    y: 0.0,
    w: 1200.0,
    h: 640.0,
};
/// The minimum area of an item or blob, in square units. Smaller items are drawn as one, and
/// smaller blobs are omitted.
const SMALLEST: f64 = 6.0;
/// The height of a group's name.
const NAME_HEIGHT: f64 = 18.0;
/// The number of colours that the style has for groups.
const COLOURS: usize = 10;
const SHARED_GROUP: &str = "shared by several";

/// A group of the treemap, laid out for the template.
pub(super) struct GroupBox {
    /// The class that gives the group its colour.
    pub(super) class: String,
    pub(super) title: String,
    pub(super) area: Rect,
    pub(super) name: Option<BoxLabel>,
    pub(super) items: Vec<ItemBox>,
}

pub(super) struct ItemBox {
    pub(super) title: String,
    pub(super) area: Rect,
    /// The titles and areas of blobs.
    pub(super) blobs: Vec<(String, Rect)>,
    pub(super) label: Option<BoxLabel>,
}

/// A text with its position and font size.
pub(super) struct BoxLabel {
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
}

/// Lays out the content; without any bytes there are no groups.
pub(super) fn treemap(contents: &[ItemContent], usage: &BlobUsage<'_>) -> Vec<GroupBox> {
    let groups = content_tree(contents, usage);
    let mut colours = (0..COLOURS).cycle();
    let areas = squarify(&sizes(&groups), AREA);
    let groups = groups.into_iter().zip(areas).map(|(group, area)| {
        let class = match group.label.as_str() {
            SHARED_GROUP => "shared".to_owned(),
            _ => format!("c{}", colours.next().unwrap_or_default()),
        };
        group_box(group, area.inset(1.0), class)
    });
    groups.collect()
}

/// A group, item or blob with its size and its parts.
struct TreeNode {
    label: String,
    title: String,
    size: u64,
    parts: Vec<TreeNode>,
}

impl TreeNode {
    /// Creates a node with `parts`, and sorts them by size, largest first.
    fn with_parts(label: &str, name: &str, mut parts: Vec<TreeNode>) -> TreeNode {
        parts.sort_by_key(|part| Reverse(part.size));
        let size = sum_sizes(sizes(&parts));
        TreeNode {
            label: label.to_owned(),
            title: format!("{name}\n{}", human_size(size)),
            size,
            parts,
        }
    }
}

fn sizes(nodes: &[TreeNode]) -> Vec<u64> {
    nodes.iter().map(|node| node.size).collect()
}

/// The groups of items and the group of shared blobs, largest first. Groups without content are
/// left out.
fn content_tree(contents: &[ItemContent], usage: &BlobUsage<'_>) -> Vec<TreeNode> {
    let mut items_by_group: BTreeMap<&str, Vec<TreeNode>> = BTreeMap::new();
    for item in contents {
        let unshared = item
            .blobs
            .iter()
            .filter(|(digest, _)| usage.is_unshared(digest));
        let blobs = unshared.map(|(digest, size)| TreeNode {
            label: String::new(),
            title: format!("{}\n{}, {}", item.name, digest.short(12), human_size(*size)),
            size: *size,
            parts: Vec::new(),
        });
        let node = TreeNode::with_parts(last_component(&item.name), &item.name, blobs.collect());
        items_by_group.entry(&item.group).or_default().push(node);
    }
    let shared = usage.shared().into_iter().map(|blob| {
        let digest = blob.digest.short(12);
        let users = blob.items.len();
        TreeNode {
            label: format!("{users} × {digest}"),
            title: format!("{digest}, {}, in {users} items", human_size(blob.size)),
            size: blob.size,
            parts: Vec::new(),
        }
    });
    let shared = TreeNode::with_parts(SHARED_GROUP, SHARED_GROUP, shared.collect());
    let mut groups: Vec<TreeNode> = items_by_group
        .into_iter()
        .map(|(name, items)| TreeNode::with_parts(name, name, items))
        .collect();
    groups.push(shared);
    groups.sort_by_key(|group| Reverse(group.size));
    groups.retain(|group| group.size > 0);
    groups
}

/// The last component of a name, with its tag.
fn last_component(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

fn group_box(group: TreeNode, area: Rect, class: String) -> GroupBox {
    // in a group that is too small for a name, the items use the whole area
    let (name, inner) = if area.h > 3.0 * NAME_HEIGHT && area.w > 60.0 {
        let text = format!("{} · {}", group.label, human_size(group.size));
        let strip = Rect {
            h: NAME_HEIGHT,
            ..area
        };
        (fit_label(&text, strip), area.below(NAME_HEIGHT).inset(1.0))
    } else {
        (None, area.inset(0.5))
    };
    GroupBox {
        class,
        area,
        name,
        items: item_boxes(&group, inner),
        title: group.title,
    }
}

/// The items of a group. Items that are too small to be seen are drawn as one.
fn item_boxes(group: &TreeNode, area: Rect) -> Vec<ItemBox> {
    let scale = area.w * area.h / group.size.max(1) as f64;
    let visible = group
        .parts
        .iter()
        .take_while(|part| part.size as f64 * scale >= SMALLEST)
        .count();
    let (visible, small) = group.parts.split_at(visible);
    let small_size = sum_sizes(sizes(small));
    let mut sizes = sizes(visible);
    // the box of all small items is the last one, even if it is larger than others: descending
    // sizes only improve the layout
    sizes.push(small_size);
    let areas = squarify(&sizes, area);
    let mut boxes: Vec<ItemBox> = visible
        .iter()
        .zip(&areas)
        .map(|(item, area)| ItemBox {
            title: item.title.clone(),
            area: *area,
            blobs: blob_boxes(item, *area),
            label: fit_label(&item.label, *area),
        })
        .collect();
    let last_area = areas.last().filter(|area| area.w * area.h > 0.5);
    if let Some(area) = last_area
        && !small.is_empty()
    {
        let text = format!("{} smaller, {}", small.len(), human_size(small_size));
        boxes.push(ItemBox {
            label: fit_label(&text, *area),
            title: text,
            area: *area,
            blobs: Vec::new(),
        });
    }
    boxes
}

/// The blobs of an item, if it has several and its area has room for them.
fn blob_boxes(item: &TreeNode, area: Rect) -> Vec<(String, Rect)> {
    if item.parts.len() < 2 || area.w <= 24.0 || area.h <= 24.0 {
        return Vec::new();
    }
    let areas = squarify(&sizes(&item.parts), area);
    let blobs = item.parts.iter().zip(areas);
    blobs
        .filter(|(_, area)| area.w * area.h >= SMALLEST)
        .map(|(blob, area)| (blob.title.clone(), area))
        .collect()
}

/// Fits `text` into `area`, or returns `None` if the area is too small. The font shrinks before the
/// text is cut, since readers can zoom.
fn fit_label(text: &str, area: Rect) -> Option<BoxLabel> {
    /// The width of a character in relation to the font size.
    const CHARACTER_WIDTH: f64 = 0.58;
    const SMALLEST_FONT: f64 = 3.0;
    const LARGEST_FONT: f64 = 12.0;
    let length = text.chars().count();
    let size = (area.w / (CHARACTER_WIDTH * (length as f64 + 1.0)))
        .clamp(SMALLEST_FONT, LARGEST_FONT)
        .min(area.h * 0.8);
    let room = (area.w / (CHARACTER_WIDTH * size)) as usize;
    if size < SMALLEST_FONT || room < 4 {
        return None;
    }
    let mut shown = text.to_owned();
    if length + 1 > room {
        shown = text.chars().take(room - 2).chain(['…']).collect();
    }
    Some(BoxLabel {
        text: shown,
        x: area.x + size * 0.3,
        y: area.y + size * 1.05,
        size,
    })
}

// Squarified treemaps: rectangles in proportion to sizes, each as square as possible (Bruls,
// Huizing, van Wijk: "Squarified Treemaps").

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
        let (x, y, w, h) = if is_wide {
            (free.x, free.y + offset, thickness, length)
        } else {
            (free.x + offset, free.y, length, thickness)
        };
        rects.push(Rect { x, y, w, h });
        offset += length;
    }
    if is_wide {
        free.right_of(thickness)
    } else {
        free.below(thickness)
    }
}

// Finds out which items use which blobs.

/// The blobs of all items, each with the items that use it.
pub(super) struct BlobUsage<'a> {
    blobs: HashMap<&'a Digest, UsedBlob<'a>>,
}

/// A blob with the items that use it.
pub(super) struct UsedBlob<'a> {
    pub(super) digest: &'a Digest,
    pub(super) size: u64,
    /// Indexes into the contents of the page.
    pub(super) items: Vec<usize>,
}

impl UsedBlob<'_> {
    /// The bytes saved by storing the blob once.
    pub(super) fn saved(&self) -> u64 {
        self.size.saturating_mul(self.items.len() as u64 - 1)
    }
}

impl<'a> BlobUsage<'a> {
    pub(super) fn new(contents: &'a [ItemContent]) -> BlobUsage<'a> {
        let mut blobs: HashMap<&Digest, UsedBlob<'_>> = HashMap::new();
        for (index, item) in contents.iter().enumerate() {
            for (digest, size) in &item.blobs {
                let users = blobs.entry(digest).or_insert_with(|| UsedBlob {
                    digest,
                    size: *size,
                    items: Vec::new(),
                });
                users.items.push(index);
            }
        }
        BlobUsage { blobs }
    }

    /// The size of all blobs, each counted once.
    pub(super) fn unique_bytes(&self) -> u64 {
        sum_sizes(self.blobs.values().map(|users| users.size))
    }

    /// Whether exactly one item uses the blob.
    pub(super) fn is_unshared(&self, digest: &Digest) -> bool {
        self.blobs
            .get(digest)
            .is_some_and(|users| users.items.len() == 1)
    }

    /// The size of the blobs of `item` that no other item uses.
    pub(super) fn unshared_bytes(&self, item: &ItemContent) -> u64 {
        let unshared = item
            .blobs
            .iter()
            .filter(|(digest, _)| self.is_unshared(digest));
        sum_sizes(unshared.map(|(_, size)| *size))
    }

    /// The blobs that several items use, those that save most first.
    pub(super) fn shared(&self) -> Vec<&UsedBlob<'_>> {
        let blobs = self.blobs.values();
        let mut shared: Vec<&UsedBlob<'_>> = blobs.filter(|blob| blob.items.len() > 1).collect();
        // sorted by digest too, so that the order is the same in every run: the map has no order
        shared.sort_by_key(|blob| (Reverse(blob.saved()), blob.digest));
        shared
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

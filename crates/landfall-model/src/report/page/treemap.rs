//! The treemap of the content: groups, items and blobs as rectangles. Blobs that several items use
//! are a group of their own.

use super::blob_usage::BlobUsage;
use super::content::ItemContent;
use super::squarify::{Rect, squarify};
use crate::{human_size, sum_sizes};
use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// The treemap, laid out for the template.
pub(super) struct Treemap {
    pub(super) groups: Vec<GroupBox>,
}

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
    pub(super) blobs: Vec<BlobBox>,
    pub(super) label: Option<BoxLabel>,
}

pub(super) struct BlobBox {
    pub(super) title: String,
    pub(super) area: Rect,
}

/// A text with its position and font size.
pub(super) struct BoxLabel {
    pub(super) text: String,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
}

impl Treemap {
    /// Lays out the content; without any bytes there are no groups.
    pub(super) fn new(contents: &[ItemContent], usage: &BlobUsage<'_>) -> Treemap {
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
        Treemap {
            groups: groups.collect(),
        }
    }
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
fn blob_boxes(item: &TreeNode, area: Rect) -> Vec<BlobBox> {
    if item.parts.len() < 2 || area.w <= 24.0 || area.h <= 24.0 {
        return Vec::new();
    }
    let areas = squarify(&sizes(&item.parts), area);
    let blobs = item.parts.iter().zip(areas);
    blobs
        .filter(|(_, area)| area.w * area.h >= SMALLEST)
        .map(|(blob, area)| BlobBox {
            title: blob.title.clone(),
            area,
        })
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

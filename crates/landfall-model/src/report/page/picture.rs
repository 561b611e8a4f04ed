//! The picture of the content: a treemap by place, item and blob; what several items share stands
//! by itself.

use super::data::{ItemContent, Sharing};
use super::treemap::{Rect, squarify};
use crate::human_size;
use crate::report::escape_html;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const AREA: Rect = Rect {
    x: 0.0,
    y: 0.0,
    w: 1200.0,
    h: 640.0,
};
/// What is smaller than this, in square units, is drawn together with its like.
const SMALLEST: f64 = 6.0;
/// The height of a group's name.
const STRIP: f64 = 18.0;
/// How many colours the style has for groups.
const COLOURS: usize = 10;

/// Something with a size, and what it is made of.
struct Node {
    label: String,
    title: String,
    size: u64,
    parts: Vec<Node>,
}

/// The picture as SVG; nothing where there is no content.
pub(super) fn picture(carried: &[ItemContent], sharing: &Sharing<'_>) -> String {
    let groups = groups(carried, sharing);
    if groups.iter().all(|group| group.size == 0) {
        return String::new();
    }
    let mut svg = format!(
        "<svg id=\"map\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Sizes by place, item and layer\">\n",
        AREA.w, AREA.h
    );
    let sizes: Vec<u64> = groups.iter().map(|group| group.size).collect();
    let mut colour = 0;
    for (group, rect) in groups.iter().zip(squarify(&sizes, AREA)) {
        let class = match group.label.as_str() {
            SHARED => "shared".to_owned(),
            _ => {
                colour += 1;
                format!("c{}", (colour - 1) % COLOURS)
            }
        };
        draw_group(&mut svg, group, rect.inset(1.0), &class);
    }
    svg + "</svg>\n"
}

/// What the group of shared content is called.
const SHARED: &str = "shared by several";

/// The items by group, and what several have; the largest first.
fn groups(carried: &[ItemContent], sharing: &Sharing<'_>) -> Vec<Node> {
    let mut groups: BTreeMap<&str, Vec<Node>> = BTreeMap::new();
    for one in carried {
        let own = one
            .blobs
            .iter()
            .filter(|(digest, _)| sharing.is_own(digest));
        let parts = own.map(|(digest, size)| Node {
            label: String::new(),
            title: format!("{}\n{}, {}", one.name, digest.short(12), human_size(*size)),
            size: *size,
            parts: Vec::new(),
        });
        groups.entry(&one.group).or_default().push(node(
            short(&one.name),
            &one.name,
            parts.collect(),
        ));
    }
    let shared = sharing
        .shared()
        .into_iter()
        .map(|(digest, size, users)| Node {
            label: format!("{} × {}", users.len(), digest.short(12)),
            title: format!(
                "{}, {}, in {} items",
                digest.short(12),
                human_size(size),
                users.len()
            ),
            size,
            parts: Vec::new(),
        });
    let mut nodes: Vec<Node> = groups
        .into_iter()
        .map(|(name, items)| node(name.into(), name, items))
        .collect();
    nodes.push(node(SHARED.into(), SHARED, shared.collect()));
    nodes.sort_by_key(|node| Reverse(node.size));
    nodes.retain(|node| node.size > 0);
    nodes
}

/// A node with its parts, the largest first.
fn node(label: String, name: &str, mut parts: Vec<Node>) -> Node {
    parts.sort_by_key(|part| Reverse(part.size));
    let size = parts.iter().map(|part| part.size).sum();
    Node {
        label,
        title: format!("{name}\n{}", human_size(size)),
        size,
        parts,
    }
}

fn draw_group(svg: &mut String, group: &Node, rect: Rect, class: &str) {
    let Rect { x, y, w, h } = rect;
    let _ = writeln!(
        svg,
        "<g class=\"group {class}\" data-box=\"{x:.1} {y:.1} {w:.1} {h:.1}\">{}",
        title(group)
    );
    draw_rect(svg, rect, "back");
    // a group too small for a name gives all its room to what is in it
    let inner = if h > 3.0 * STRIP && w > 60.0 {
        let name = format!("{} · {}", group.label, human_size(group.size));
        draw_text(svg, &name, Rect { h: STRIP, ..rect }, "name");
        rect.below(STRIP).inset(1.0)
    } else {
        rect.inset(0.5)
    };
    draw_parts(svg, group, inner);
    svg.push_str("</g>\n");
}

/// The parts of a group, and their blobs where they have room; the smallest together.
fn draw_parts(svg: &mut String, of: &Node, rect: Rect) {
    let scale = rect.w * rect.h / of.size.max(1) as f64;
    let seen = of
        .parts
        .iter()
        .take_while(|part| part.size as f64 * scale >= SMALLEST)
        .count();
    let (seen, rest) = of.parts.split_at(seen);
    let mut sizes: Vec<u64> = seen.iter().map(|part| part.size).collect();
    let rest_size: u64 = rest.iter().map(|part| part.size).sum();
    // it stands last, whatever its size: the order only serves the looks
    sizes.push(rest_size);
    let rects = squarify(&sizes, rect);
    for (part, rect) in seen.iter().zip(&rects) {
        let _ = write!(svg, "<g>{}", title(part));
        draw_rect(svg, *rect, "item");
        if part.parts.len() > 1 && rect.w > 24.0 && rect.h > 24.0 {
            draw_blobs(svg, part, *rect);
        }
        draw_text(svg, &part.label, *rect, "label");
        svg.push_str("</g>\n");
    }
    if let (false, Some(rect)) = (
        rest.is_empty(),
        rects.last().filter(|rect| rect.w * rect.h > 0.5),
    ) {
        let words = format!("{} smaller, {}", rest.len(), human_size(rest_size));
        let _ = write!(svg, "<g><title>{words}</title>");
        draw_rect(svg, *rect, "item");
        draw_text(svg, &words, *rect, "label");
        svg.push_str("</g>\n");
    }
}

fn draw_blobs(svg: &mut String, item: &Node, rect: Rect) {
    let sizes: Vec<u64> = item.parts.iter().map(|part| part.size).collect();
    for (blob, rect) in item.parts.iter().zip(squarify(&sizes, rect)) {
        if rect.w * rect.h >= SMALLEST {
            let Rect { x, y, w, h } = rect;
            let _ = write!(
                svg,
                "<rect class=\"blob\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\">{}</rect>",
                title(blob)
            );
        }
    }
}

fn draw_rect(svg: &mut String, Rect { x, y, w, h }: Rect, class: &str) {
    let _ = write!(
        svg,
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\"/>"
    );
}

/// A text that fits into `rect`: in a smaller type before it is cut, as one may zoom.
fn draw_text(svg: &mut String, text: &str, rect: Rect, class: &str) {
    const WIDE: f64 = 0.58;
    let (most, least) = (12.0, 3.0);
    let length = text.chars().count() as f64;
    let size = (rect.w / (WIDE * (length + 1.0)))
        .clamp(least, most)
        .min(rect.h * 0.8);
    let room = (rect.w / (WIDE * size)) as usize;
    if size < least || room < 4 {
        return;
    }
    let shown = match length as usize + 1 > room {
        true => text
            .chars()
            .take(room.saturating_sub(2))
            .chain(['…'])
            .collect(),
        false => text.to_owned(),
    };
    let (x, y) = (rect.x + size * 0.3, rect.y + size * 1.05);
    let _ = write!(
        svg,
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\">{}</text>",
        escape_html(&shown)
    );
}

fn title(node: &Node) -> String {
    format!("<title>{}</title>", escape_html(&node.title))
}

/// The last component of a name, with its tag.
fn short(name: &str) -> String {
    name.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(name)
        .to_owned()
}

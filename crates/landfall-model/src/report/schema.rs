//! The form of the JSON document of every command, as one table: the schema and
//! `docs/reference/report.md` say the same.

use serde_json::{Map, Value, json};

/// A member of the document: its name, its JSON type, which commands have it, and what it means.
pub(super) struct Member {
    /// Its name.
    pub name: &'static str,
    /// `string`, `integer`, `array` or `object`; several words where it may be several.
    pub kind: &'static str,
    /// The commands that may have it; empty means all.
    pub commands: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
}

const fn member(
    name: &'static str,
    kind: &'static str,
    commands: &'static [&'static str],
    meaning: &'static str,
) -> Member {
    Member {
        name,
        kind,
        commands,
        meaning,
    }
}

/// Every member. The first five are in every document.
pub(super) const MEMBERS: &[Member] = &[
    member("command", "string", &[], "the command that was run"),
    member(
        "status",
        "string",
        &[],
        "`done`, `partial`, `failed` or `refused`: exit 0, 3, 1 or 2, and 4. A pack that is refused because something \
         is missing is `refused` with exit 3",
    ),
    member(
        "items",
        "array",
        &[],
        "one for each lock entry that the command handled, see below",
    ),
    member(
        "totals",
        "object",
        &[],
        "how many items have which status, and the traffic, see below",
    ),
    member(
        "hosts",
        "array",
        &[],
        "every host that was contacted, see below",
    ),
    member(
        "error",
        "object",
        &[],
        "what ended the command: `message`, and `side` and `item` where they are known",
    ),
    member(
        "lock",
        "string",
        &["lock", "push", "mirror", "ls", "update", "refresh"],
        "the fingerprint of the lock",
    ),
    member(
        "bundle",
        "object",
        &[
            "pull", "pack", "sign", "verify", "push", "ls", "refresh", "report", "sbom",
        ],
        "`path`, `digest`, `lock`, `bytes`, what it lacks (`partial`), `bases` and `omitted` of a delta, `signed` and \
         the `signer` that was checked; after `pack` and `pull` also `content_bytes`, `files` and `beside`",
    ),
    member(
        "changes",
        "array",
        &["lock", "diff", "report", "rewrite", "update", "refresh"],
        "what differs, or what was rewritten. An item that comes in another version `replaces` one, with `version` \
         `up` or `down`; that one is `replacedBy` it. `packages` of a set says how each differs: `name`, `arch`, `change`, \
         `from`, `to`, `bytes`, `digest`, and `changelog` where it is at hand",
    ),
    member(
        "updates",
        "array",
        &["update", "refresh"],
        "versions that moved or are held back: `name`, `at`, `policy`, `from`, `to`, `items`, and `held` with `version` and \
         `why`; of a package the `source` that has it",
    ),
    member(
        "open",
        "array",
        &["lock"],
        "references in charts that cannot be resolved: `item`, `reference`, `at`, `why`",
    ),
    member(
        "shard",
        "object",
        &["pull", "push", "mirror", "verify"],
        "with `--shard`: the `number` of this runner, from 1, and how many there are (`of`)",
    ),
    member(
        "needed_bytes",
        "integer",
        &["pull", "pack", "push", "mirror", "export"],
        "room that is needed at the most",
    ),
    member(
        "available_bytes",
        "integer",
        &["pull", "pack", "export"],
        "room that is there, in a dry run",
    ),
    member(
        "to",
        "string",
        &["push", "mirror", "status"],
        "the registry and the prefix that was delivered to, or asked",
    ),
    member(
        "standings",
        "array",
        &["status"],
        "each tag of the lock at the registry: `state` (`there`, `missing`, `different`, `incomplete`, `foreign`, \
         `unknown`), `at`, `kind`, `name`, `wanted`, `stands`, `why`",
    ),
    member(
        "problems",
        "array",
        &["push", "mirror"],
        "what is in the way: `kind`, `at`, `message`, `stands`, `wanted`",
    ),
    member(
        "moved",
        "array",
        &["push", "mirror"],
        "tags that stood at another digest: `at`, `from`, `to`",
    ),
    member(
        "trimmed",
        "array",
        &["push", "mirror"],
        "indexes that were trimmed: `name`, `from`, `to`",
    ),
    member(
        "delivered",
        "array",
        &["push", "mirror"],
        "what stands at the registry: `name`, `at`, `digest`",
    ),
    member(
        "volume",
        "object",
        &["pack"],
        "the volume that was packed again: `path`, `bytes`",
    ),
    member(
        "platforms",
        "object",
        &["ls", "render"],
        "the platforms of each image, by its name; of `--list`, what each writes",
    ),
    member(
        "referrers",
        "object",
        &["ls"],
        "how many signatures, attestations and SBOMs each image carries, by its name",
    ),
    member(
        "endpoints",
        "array",
        &["ls"],
        "the endpoints of the lock: `host`, `port`, `why`, `from`",
    ),
    member(
        "endpointChanges",
        "array",
        &["lock", "diff", "report", "refresh"],
        "how endpoints differ: `change`, `host`, `port`, `why`, `from`",
    ),
    member(
        "archive",
        "object",
        &["export"],
        "the archive of images that was written",
    ),
    member(
        "hostChanges",
        "array",
        &["diff", "report"],
        "hosts that only one side needs, as `landfall egress --diff` has them",
    ),
    member(
        "old",
        "object",
        &["diff", "report"],
        "the older side: what it is (`of`), and the fingerprint of its `lock`",
    ),
    member(
        "new",
        "object",
        &["diff", "report"],
        "the newer side, the same; of a lock or bundle also how many `blobs` only it has, their `bytes`, and `all_bytes`",
    ),
    member(
        "files",
        "array",
        &["rewrite", "render"],
        "each file: `file`, `status`, `changes`, `settled`, `readAs`; of render `file`, `mode`, `secret`",
    ),
    member(
        "left",
        "array",
        &["rewrite"],
        "references that were left, and why",
    ),
    member(
        "unknown",
        "object",
        &["rewrite"],
        "references that the lock does not have: `count`, and the command that lists them (`audit`)",
    ),
    member(
        "text",
        "string",
        &["rewrite", "render"],
        "the document or the diff that text mode prints",
    ),
    member("held", "array", &["audit"], "references that the lock has"),
    member(
        "missing",
        "array",
        &["audit", "render"],
        "what the lock lacks; of packages with their `manager`",
    ),
    member(
        "undecided",
        "array",
        &["audit", "init", "discover", "render"],
        "what may be a reference",
    ),
    member(
        "unread",
        "array",
        &["audit", "init", "discover"],
        "files that could not be read",
    ),
    member(
        "packages",
        "array",
        &["init", "discover"],
        "packages that machines install, which are not carried: `manager`, `name`, `at`",
    ),
    member(
        "archives",
        "array",
        &["pull"],
        "what came of each archive of another tool: `path`, `blobs`, `bytes`, `notUsed`",
    ),
    member(
        "lacking",
        "array null",
        &["audit"],
        "what the registry lacks, where it was asked",
    ),
    member(
        "otherRegistries",
        "array",
        &["audit"],
        "registries at which the missing references are names of locked images: what to name with `--to`",
    ),
    member(
        "unpinned",
        "array",
        &["init", "discover"],
        "images without a version, which the manifest has as comments",
    ),
    member(
        "manifest",
        "string",
        &["init", "discover", "import"],
        "the manifest that was drafted",
    ),
    member(
        "notCarried",
        "array",
        &["import", "export"],
        "wanted items that the manifest or list cannot have, and why",
    ),
    member(
        "list",
        "string",
        &["export"],
        "the list that was written, in the form of another tool",
    ),
    member(
        "notes",
        "array",
        &["import"],
        "settings that the manifest has no place for",
    ),
    member(
        "systems",
        "array",
        &["init"],
        "what landfall ships: name, about, files, edit, platform",
    ),
    member(
        "written",
        "array",
        &["init"],
        "the files that were written of what landfall ships",
    ),
    member("edit", "array", &["init"], "what must be edited in them"),
    member(
        "site",
        "string",
        &["init", "import"],
        "the site that was drafted",
    ),
    member("next", "string", &["init"], "the command to go on with"),
    member(
        "helm",
        "string null",
        &["init", "discover"],
        "the helm that rendered charts",
    ),
    member(
        "keys",
        "array",
        &["render"],
        "the keys of values that were written",
    ),
    member(
        "egress",
        "object",
        &["egress"],
        "the `hosts` that the lock needs, and `notes` of what is not known yet",
    ),
    member(
        "targets",
        "array",
        &["doctor"],
        "each target, and the steps to it",
    ),
    member(
        "ports",
        "array",
        &["doctor"],
        "the ports that the role needs: `role`, `port`, `protocol`, `from`, `to`, `address`, `why`",
    ),
    member("lint", "array", &["doctor"], "what is wrong with NO_PROXY"),
    member(
        "stale",
        "array",
        &["render"],
        "files that an earlier run wrote and this one did not",
    ),
    member(
        "bundles",
        "object",
        &["gc"],
        "the bundles whose content stays (`kept`), and the `older` ones",
    ),
    member(
        "pruned",
        "object",
        &["push"],
        "what the registry had and nobody needs: `manifests` (`repository`, `digest`, `tags`), the `bytes` of blobs that nothing \
         named needs any more, the `repositories` with how many tags stay (`kept`) or `why` one was left, and whether they were `deleted`",
    ),
    member(
        "notices",
        "array",
        &["lock", "report", "update", "refresh"],
        "what upstream says about itself: `kind` (`gone`, `moved`, `newer`, `old`), `name`, `message`, whether it is `taken`, \
         and `from` and `to` of what moved",
    ),
    member("sbom", "object", &["sbom"], "the CycloneDX document"),
    member(
        "published",
        "object",
        &["publish"],
        "what the servers of the store serve now: its `place`, the fingerprint of the `lock`, and of the one `before` it",
    ),
    member(
        "removed",
        "array",
        &["gc"],
        "what was removed, or would be: `what`, `digest`, `bytes`",
    ),
    member("kept", "object", &["gc"], "what stays: `blobs`, `bytes`"),
    member(
        "strange",
        "array",
        &["gc"],
        "files that are none of the store's",
    ),
    member(
        "schema",
        "object",
        &["schema"],
        "the schema that was asked for",
    ),
];

/// The members of an item.
pub(super) const ITEM: &[Member] = &[
    member(
        "kind",
        "string",
        &[],
        "`image`, `file`, `sidecar`, `referrer`, `chart` or `package`",
    ),
    member("name", "string", &[], "its name in the lock"),
    member("digest", "string", &[], "its digest, if known"),
    member(
        "bytes",
        "integer",
        &[],
        "its size with all its parts, if known",
    ),
    member(
        "status",
        "string",
        &[],
        "`done`, `present`, `skipped`, `missing` or `failed`",
    ),
    member(
        "reason",
        "string",
        &[],
        "why, where there is something to say",
    ),
];

/// The members of the totals.
pub(super) const TOTALS: &[Member] = &[
    member("items", "integer", &[], "the number of items"),
    member("done", "integer", &[], "the command did something for them"),
    member("present", "integer", &[], "they were there already"),
    member(
        "skipped",
        "integer",
        &[],
        "left out by a dry run, or lost as the manifest accepts",
    ),
    member("missing", "integer", &[], "absent where they should be"),
    member("failed", "integer", &[], "the command failed for them"),
    member(
        "bytes_transferred",
        "integer",
        &[],
        "body bytes received and sent",
    ),
    member(
        "requests",
        "integer",
        &[],
        "HTTP requests sent, retries, redirects and tokens included",
    ),
];

/// The members of a host.
pub(super) const HOST: &[Member] = &[
    member("host", "string", &[], "name or address"),
    member("port", "integer", &[], "port"),
    member("scheme", "string", &[], "`https` or `http`"),
    member(
        "for",
        "string",
        &[],
        "the upstream that it is the mirror of",
    ),
    member("via", "string", &[], "the proxy, without credentials"),
    member("bytes", "integer", &[], "body bytes received and sent"),
    member("requests", "integer", &[], "requests sent"),
    member(
        "why",
        "string",
        &[],
        "`registry`, `file`, `token`, `redirect`, `object-store`, comma-separated",
    ),
    member(
        "namedBy",
        "array",
        &[],
        "`host:port` of those whose answers named it: by a redirect, or as a token realm",
    ),
];

/// The JSON schema of the document of every command.
pub fn schema() -> Value {
    let mut top = properties(MEMBERS);
    top["items"]["items"] = object(ITEM, &["kind", "name", "status"]);
    top["totals"]["properties"] = properties(TOTALS).into();
    top["totals"]["required"] = TOTALS.iter().map(|member| member.name).collect();
    top["hosts"]["items"] = object(
        HOST,
        &["host", "port", "scheme", "bytes", "requests", "why"],
    );
    top["status"]["enum"] = json!(["done", "partial", "failed", "refused"]);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report",
        "description": "What --output json prints, and --report writes.",
        "type": "object",
        "properties": top,
        "required": ["command", "status", "items", "totals", "hosts"],
    })
}

fn object(members: &[Member], required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties(members), "required": required})
}

fn properties(members: &[Member]) -> Map<String, Value> {
    let property = |member: &Member| {
        let kinds: Vec<&str> = member.kind.split(' ').collect();
        let kind = if let [one] = kinds[..] {
            json!(one)
        } else {
            json!(kinds)
        };
        let meaning = match member.commands {
            [] => member.meaning.to_owned(),
            commands => format!("{} (of {})", member.meaning, commands.join(", ")),
        };
        (
            member.name.to_owned(),
            json!({"type": kind, "description": meaning}),
        )
    };
    members.iter().map(property).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// `docs/reference/report.md` has this table between its headings.
    fn table(members: &[Member], has_commands: bool) -> String {
        let mut table = String::new();
        for Member {
            name,
            kind,
            commands,
            meaning,
        } in members
        {
            let kind = kind.replace(' ', " or ");
            let _ = match has_commands {
                true if commands.is_empty() => {
                    writeln!(table, "| `{name}` | {kind} | all | {meaning} |")
                }
                true => writeln!(
                    table,
                    "| `{name}` | {kind} | {} | {meaning} |",
                    commands.join(", ")
                ),
                false => writeln!(table, "| `{name}` | {kind} | {meaning} |"),
            };
        }
        table
    }

    #[test]
    fn the_page_and_the_schema_say_the_same() {
        let page = include_str!("../../../../docs/reference/report.md");
        for (members, has_commands) in [
            (MEMBERS, true),
            (ITEM, false),
            (TOTALS, false),
            (HOST, false),
        ] {
            let table = table(members, has_commands);
            assert!(
                page.contains(&table),
                "docs/reference/report.md lacks this table:\n{table}"
            );
        }
    }
}

//! The members of the JSON document of every command, as one table. The schema is made from it, and
//! a test compares `docs/reference/report.md` with it.

use serde_json::{Map, Value, json};

/// A member of the document: its name, its JSON type, which commands have it, and what it means.
pub(super) struct Member {
    pub name: &'static str,
    /// `string`, `integer`, `array`, `object` or `null`; several words if the value may have
    /// several types.
    pub kind: &'static str,
    /// The commands that may have it; empty means all.
    pub commands: &'static [&'static str],
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
        "`done` (exit 0), `partial` (exit 3), `failed` (exit 1 or 2) or `refused` (exit 4). A \
         `pack` that is refused because content is missing is `refused` with exit 3",
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
        "the number of items by status, and the traffic, see below",
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
        "what ended the command: `message`, and `side` and `item` if they are known",
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
        "`path`, `digest`, `lock`, `bytes`, what it lacks (`partial`), `bases` and `omitted` of \
         a delta, `recipes` and `references` of a bundle with patches (the blobs that it has \
         patches for, and the blobs outside the bundle that the patches use), `signed` and the \
         `signer` that was verified; \
         after `pack` and `pull` also `content_bytes`, `files` and `beside` (files next to it)",
    ),
    member(
        "patches",
        "object",
        &["pack", "refresh", "diff"],
        "with `--patches`, what the bundle carries: the sizes of blobs that are carried whole \
         (`whole_bytes`), omitted (`omitted_bytes`) or patched (`patched_bytes`), and of their \
         patches (`patch_bytes`). `items` has the same for each item, and its `blobs`: `digest`, \
         `size`, how it is `carried` (`whole`, `omitted` or `patched`), the `reason` why it has \
         no patch, or `patch_bytes` and the blobs that the patch uses (`from`). After `diff` the \
         sizes of patches are `estimated`; if that is impossible, there is only a `reason`",
    ),
    member(
        "changes",
        "array",
        &[
            "lock", "diff", "report", "rewrite", "render", "update", "refresh",
        ],
        "what differs, or what was rewritten. If an item is replaced by another version, the \
         new one has `replaces` and `version` (`up` or `down`), the old one `replacedBy`. \
         `packages` of a set lists the changes: `name`, `arch`, `change`, `from`, `to`, \
         `bytes`, `digest`, and `changelog` if it is available. `newBytes` is the size of the \
         item's new content, if it is known: a receipt has no sizes",
    ),
    member(
        "updates",
        "array",
        &["update", "refresh"],
        "versions that moved, are held or wait: `name`, `at`, `policy`, `from`, `to`, `items`, \
         `held` with `version` and `why`, and `waiting` with `version`, `firstSeen` and `until`; \
         for a package the `source` that has it",
    ),
    member(
        "open",
        "array",
        &["lock"],
        "references in charts that cannot be resolved: `item`, `reference`, `at`, `why`",
    ),
    member(
        "changedNames",
        "array",
        &["lock", "pull", "update", "refresh"],
        "names of failing items that changed since manuals were written: `name`, `replacement`, \
         `says`, `source`",
    ),
    member(
        "shard",
        "object",
        &["pull", "push", "mirror", "verify"],
        "with `--shard`: the `number` of this runner, from 1, and the number of runners (`of`)",
    ),
    member(
        "needed_bytes",
        "integer",
        &["pull", "pack", "push", "mirror", "export"],
        "the disk space that is needed at most",
    ),
    member(
        "available_bytes",
        "integer",
        &["pull", "pack", "export"],
        "the free disk space, in a dry run",
    ),
    member(
        "to",
        "string",
        &["push", "mirror", "status"],
        "the registry and prefix to which content was delivered, or that was compared",
    ),
    member(
        "standings",
        "array",
        &["status"],
        "each tag of the lock at the registry: `state` (`there`, `missing`, `different`, \
         `incomplete`, `foreign`, `unknown`), `at`, `kind`, `name`, `wanted` (the locked \
         digest), `stands` (the digest at the registry), `why`",
    ),
    member(
        "problems",
        "array",
        &["push", "mirror"],
        "what prevents the delivery: `kind`, `at`, `message`, `stands`, `wanted`",
    ),
    member(
        "moved",
        "array",
        &["push", "mirror"],
        "tags that had another digest: `at`, `from`, `to`",
    ),
    member(
        "trimmed",
        "array",
        &["push", "mirror", "export"],
        "indexes that were trimmed: `name`, `from`, `to`",
    ),
    member(
        "delivered",
        "array",
        &["push", "mirror"],
        "what the registry has now: `name`, `at`, `digest`",
    ),
    member(
        "unlisted",
        "string",
        &["push", "mirror"],
        "why the list of locks could not be written, so that `serve --from` does not find the new \
         items",
    ),
    member(
        "volume",
        "object",
        &["pack"],
        "the volume that was packed again: `path`, `bytes`",
    ),
    member(
        "signatures",
        "array",
        &["lock", "verify", "push", "status", "report"],
        "verified signatures of images, charts and files: `name`, `by` and the other keys of \
         `verified` in the lock, and `verified`: whether this run verified it",
    ),
    member(
        "unmatchedRules",
        "array",
        &["lock", "verify", "push"],
        "the rules for signatures that match no item",
    ),
    member(
        "repositories",
        "array",
        &["verify"],
        "the git repositories: `name`, and whether their packs were `checked` to have everything \
         that their refs need; a delta needs its bases for that",
    ),
    member(
        "platforms",
        "object",
        &["ls", "render"],
        "for `ls` the platforms of each image, by its name; for `render --list` what each \
         platform writes",
    ),
    member(
        "referrers",
        "object",
        &["ls"],
        "the number of signatures, attestations and SBOMs of each image, by its name",
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
        &["lock", "diff", "report", "update", "refresh"],
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
        "hosts that only one side needs, as in `landfall egress --diff`",
    ),
    member(
        "old",
        "object",
        &["diff", "report"],
        "the older side: its type (`of`), and the fingerprint of its `lock`",
    ),
    member(
        "new",
        "object",
        &["diff", "report"],
        "the newer side, likewise; for a lock or bundle also the number of `blobs` that only it \
         has, their `bytes`, and `all_bytes`",
    ),
    member(
        "files",
        "array",
        &["rewrite", "render"],
        "each file: `file`, `status`, `changes`, `settled`, `readAs`; for `render` `file`, \
         `mode`, `secret`",
    ),
    member(
        "left",
        "array",
        &["rewrite"],
        "references that were left unchanged, and why",
    ),
    member(
        "unknown",
        "object",
        &["rewrite"],
        "references that the lock lacks: `count`, and the command that lists them (`audit`)",
    ),
    member(
        "text",
        "string",
        &["rewrite", "render"],
        "the document or diff that text mode prints",
    ),
    member(
        "held",
        "array",
        &["audit"],
        "references that the lock contains",
    ),
    member(
        "missing",
        "array",
        &["audit", "render"],
        "what the lock lacks; for packages with their `manager`, for git repositories with their `git`",
    ),
    member(
        "undecided",
        "array",
        &["audit", "init", "discover", "render"],
        "possible references",
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
        "packages that machines install and that are not carried: `manager`, `name`, `at`",
    ),
    member(
        "archives",
        "array",
        &["pull"],
        "the blobs that were read from each archive of another tool: `path`, `blobs`, `bytes`, \
         `notUsed`",
    ),
    member(
        "lacking",
        "array null",
        &["audit"],
        "what the registry lacks, if it was queried",
    ),
    member(
        "otherRegistries",
        "array",
        &["audit"],
        "registries other than the site's at which missing references name locked images: \
         possible values for `--to`",
    ),
    member(
        "unpinned",
        "array",
        &["init", "discover"],
        "images without a version, which are comments in the manifest",
    ),
    member(
        "manifest",
        "string",
        &["init", "discover", "import"],
        "the manifest that was written",
    ),
    member(
        "notCarried",
        "array",
        &["import", "export"],
        "requested items that the manifest or list cannot express, and why",
    ),
    member(
        "list",
        "string",
        &["export"],
        "the list that was written, in the format of another tool",
    ),
    member(
        "notes",
        "array",
        &["import"],
        "settings that the manifest or site cannot express",
    ),
    member(
        "systems",
        "array",
        &["init"],
        "the systems of the catalogue: name, about, files, edit, platform",
    ),
    member(
        "written",
        "array",
        &["init"],
        "the files that were copied from the catalogue",
    ),
    member(
        "edit",
        "array",
        &["init"],
        "what must be edited in the copied files",
    ),
    member(
        "site",
        "string",
        &["init", "import"],
        "the site that was written",
    ),
    member("next", "string", &["init"], "the next command"),
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
        "the `hosts` that the lock needs, and `notes` about what is unknown",
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
    member("lint", "array", &["doctor"], "the faults of NO_PROXY"),
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
        "the bundles whose content is kept (`kept`), and the `older` ones",
    ),
    member(
        "pruned",
        "object",
        &["push"],
        "unneeded content of the registry: `manifests` (`repository`, `digest`, `tags`), \
         the `bytes` of blobs that nothing needs any more (`null` if a repository could not be \
         examined), the `repositories`, each with the number of tags that remain (`kept`) and the \
         reason if it could not be pruned completely (`why`), and whether the manifests were \
         `deleted`",
    ),
    member(
        "notices",
        "array",
        &["lock", "report", "update", "refresh"],
        "notices about upstream, old images and wrong clocks: `kind` (`gone`, `moved`, `newer`, \
         `old`, `clock`), `name`, `message`, whether the change was accepted (`taken`), `from` \
         and `to` if the content moved, and the time `until` which the change waits",
    ),
    member("sbom", "object", &["sbom"], "the CycloneDX document"),
    member(
        "published",
        "object",
        &["publish"],
        "the content that servers of the store now serve: its `place`, the fingerprint of the \
         `lock`, and that of the lock `before` it",
    ),
    member(
        "removed",
        "array",
        &["gc"],
        "the content that was removed, or would be: `what`, `digest`, `bytes`",
    ),
    member("kept", "object", &["gc"], "what is kept: `blobs`, `bytes`"),
    member(
        "strange",
        "array",
        &["gc"],
        "files that do not belong to a store",
    ),
    member(
        "condemned",
        "array",
        &["gc"],
        "the unused blobs of an object store that were marked in this run: `digest`, `bytes`",
    ),
    member(
        "waiting",
        "integer",
        &["gc"],
        "the number of marked blobs of an object store whose grace period has not ended",
    ),
    member(
        "uploads",
        "integer",
        &["gc"],
        "the number of unfinished uploads to an object store that were aborted",
    ),
    member(
        "claims",
        "integer",
        &["gc"],
        "the number of locks that claim blobs of an object store",
    ),
    member(
        "replaced",
        "array",
        &["doctor"],
        "for `doctor packages`, the installed packages that would be replaced or removed",
    ),
    member(
        "diff",
        "string",
        &["render"],
        "with `--into` and `--diff`, the difference that text mode prints",
    ),
    member(
        "log",
        "object",
        &[
            "lock", "update", "refresh", "pull", "pack", "sign", "verify", "push", "mirror",
            "publish", "gc", "report", "log",
        ],
        "the evidence log: its `path`, and the hash of its last record (`head`); of `report` and \
         `log` also the number of `records`",
    ),
    member(
        "records",
        "array",
        &["report"],
        "the records of the log about the bundle or its lock: `seq`, `time`, `command`, `status`, \
         `exit`, `registry`, `version`",
    ),
    member("schema", "object", &["schema"], "the requested schema"),
];

/// The members of an item.
pub(super) const ITEM: &[Member] = &[
    member(
        "kind",
        "string",
        &[],
        "`image`, `file`, `sidecar`, `referrer`, `chart`, `package`, `git` or `provider`; \
         `variable` for a variable of a manifest whose versions `update` could not look up",
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
    member("reason", "string", &[], "why, if there is a reason"),
];

/// The members of the totals.
pub(super) const TOTALS: &[Member] = &[
    member("items", "integer", &[], "the number of items"),
    member(
        "done",
        "integer",
        &[],
        "the number that the command transferred or changed",
    ),
    member("present", "integer", &[], "the number that existed already"),
    member(
        "skipped",
        "integer",
        &[],
        "the number omitted by a dry run, or missing with the consent of the manifest",
    ),
    member("missing", "integer", &[], "the number that is missing"),
    member("failed", "integer", &[], "the number that failed"),
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
    member("for", "string", &[], "the upstream that it mirrors"),
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
        "`host:port` of the hosts whose responses named it, by a redirect or as a token realm",
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
    members
        .iter()
        .map(|member| {
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
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// Formats a table as `docs/reference/report.md` must contain it.
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
            let commands = if !has_commands {
                String::new()
            } else if commands.is_empty() {
                " all |".to_owned()
            } else {
                format!(" {} |", commands.join(", "))
            };
            let _ = writeln!(table, "| `{name}` | {kind} |{commands} {meaning} |");
        }
        table
    }

    #[test]
    fn the_page_and_the_schema_agree() {
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

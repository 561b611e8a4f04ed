//! policy.json and registries.d (containers-policy.json(5), containers-registries.d(5)): which
//! signatures podman, skopeo, buildah and CRI-O demand.
//!
//! The rules of a site contain patterns, and a scope cannot be a pattern. So each repository of the
//! lock has a scope of its own, under its original name and its names at the registry. If the
//! images of a repository have different rules, each of their tags and digests has a scope. If an
//! image of a host needs a signature, all repositories of the host that are not locked are
//! rejected. If any signature is required, other repositories at the registry need the signature of
//! the site's key, and are rejected if this key is not given.

use crate::platform::{
    InputFlag, PlatformInput, PlatformSetting, PlatformSettings, RenderRequest, wrong_value,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_item::{LockedImage, LockedItem, LockedPackageSet, OfferedIndex};
use landfall_model::document::{read_input, read_text_input};
use landfall_model::sign::OpenPgpSigner;
use landfall_model::{Failure, ImageRef, alias_hosts};
use landfall_signature::{RuleSigners, SignaturePolicy};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The setting that demands the signatures of upstream.
pub(super) const POLICY: PlatformSetting = PlatformSetting {
    key: "policy",
    value_name: "rules",
    help: "Adds a policy that admits images as the rules in `verify` of the site say",
    default: None,
    choices: &["rules"],
};

/// Who must have signed an image, and the name that the signature must contain.
struct ScopeRule {
    signers: RuleSigners,
    /// The repository that the signature names.
    signed_name: String,
}

/// Renders policy.json and a file of registries.d, if the settings ask for a policy.
pub(super) fn signature_policy(
    request: &RenderRequest<'_>,
) -> Result<Option<(String, String)>, Failure> {
    let key = image_key(&request.settings)?;
    let has_rules = request.settings.get(POLICY.key).is_some();
    if key.is_none() && !has_rules {
        return Ok(None);
    }
    let policy = match request.site.filter(|_| has_rules) {
        Some(site) => SignaturePolicy::of_site(site).map_err(wrong)?,
        None => SignaturePolicy::default(),
    };
    // without a rule, the policy would admit every image
    if has_rules && policy.is_empty() {
        return Err(wrong("the site has no rules; add `verify` to it"));
    }
    // several repositories may have one destination, so a scope can have several requirements,
    // and an image must meet all of them
    let mut scopes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut hosts = BTreeSet::new();
    let mut repositories: BTreeMap<String, Vec<&LockedImage>> = BTreeMap::new();
    for image in &request.lock.images {
        let images = repositories.entry(image.name.name()).or_default();
        images.push(image);
    }
    for images in repositories.into_values() {
        let rules = images
            .iter()
            .map(|image| rule_of(request, &policy, key.as_deref(), &image.name))
            .collect::<Result<Vec<_>, _>>()?;
        let registry = &images[0].name.registry;
        if rules.iter().any(Option::is_some) {
            hosts.insert(registry.clone());
            hosts.extend(alias_hosts(registry).map(str::to_owned));
        }
        let requirements: Vec<Value> = rules
            .iter()
            .map(|rule| requirement(rule.as_ref()))
            .collect();
        let is_uniform = requirements.iter().all(|one| *one == requirements[0]);
        for (image, requirement) in images.iter().zip(requirements) {
            let names = repository_names(request, &image.name);
            // a repository whose images have one rule is a scope; otherwise each reference is
            let names = if is_uniform {
                names
            } else {
                references(&names, image)
            };
            for name in names {
                let requirements = scopes.entry(name).or_default();
                if !requirements.contains(&requirement) {
                    requirements.push(requirement.clone());
                }
            }
        }
    }
    for host in &hosts {
        scopes.insert(host.clone(), vec![json!({"type": "reject"})]);
    }
    if !hosts.is_empty() {
        let registry = &request.mapping.target().registry;
        let others = match &key {
            Some(key) => signed_by(&site_signers(key), json!({"type": "matchRepository"})),
            None => json!({"type": "reject"}),
        };
        scopes.insert(registry.clone(), vec![others]);
        hosts.insert(registry.clone());
    }
    let policy = json!({
        "default": [{"type": "insecureAcceptAnything"}],
        "transports": {"docker": scopes},
    });
    let mut attachments = "docker:\n".to_owned();
    for host in &hosts {
        attachments += &format!("  \"{host}\":\n    use-sigstore-attachments: true\n");
    }
    Ok(Some((format!("{policy:#}\n"), attachments)))
}

/// Returns the names of an image's repository: the original one, and those at the registry.
fn repository_names(request: &RenderRequest<'_>, image: &ImageRef) -> Vec<String> {
    let destinations = request.mapping.destinations(image);
    let mut names: Vec<String> = destinations.iter().map(ToString::to_string).collect();
    let aliases = alias_hosts(&image.registry);
    names.extend(aliases.map(|host| format!("{host}/{}", image.repository)));
    names.push(image.name());
    names
}

/// Returns the references to an image under the `names` of its repository: the tag and each digest.
fn references(names: &[String], image: &LockedImage) -> Vec<String> {
    let tag = image.name.tag_or_latest().map(|tag| format!(":{tag}"));
    // a client may use the digest of the index, of a child, or of the trimmed index
    let digests = LockedItem::Image(image).digests();
    let digests = digests.iter().map(|digest| format!("@{digest}"));
    let suffixes: Vec<String> = tag.into_iter().chain(digests).collect();
    let references = names
        .iter()
        .flat_map(|name| suffixes.iter().map(move |suffix| format!("{name}{suffix}")));
    references.collect()
}

/// The requirement of a rule; without a rule, every image is admitted.
fn requirement(rule: Option<&ScopeRule>) -> Value {
    match rule {
        Some(rule) => signed_by(&rule.signers, rule.identity()),
        None => json!({"type": "insecureAcceptAnything"}),
    }
}

/// Returns who must have signed `image`. With the site's rules, these are the signers of the rule
/// for the image, or the key of the site if policy.json cannot express that rule. Without rules, it
/// is the key of the site. Returns `None` if the rules do not mention the image.
fn rule_of(
    request: &RenderRequest<'_>,
    policy: &SignaturePolicy,
    key: Option<&str>,
    image: &ImageRef,
) -> Result<Option<ScopeRule>, Failure> {
    let has_rules = request.settings.get(POLICY.key).is_some();
    let signers = policy.signers(image).into_iter().next();
    let inexpressible = match &signers {
        Some(signers) => inexpressible(signers),
        None if has_rules => return Ok(None),
        None => None,
    };
    let destination = request.mapping.destinations(image).into_iter().next();
    match (signers, inexpressible, key, destination) {
        (Some(signers), None, _, _) => Ok(Some(ScopeRule {
            signers,
            signed_name: image.name(),
        })),
        (_, _, Some(key), Some(destination)) => Ok(Some(ScopeRule {
            signers: site_signers(key),
            signed_name: destination.to_string(),
        })),
        (_, why, ..) => Err(wrong(format!(
            "the rule for {image} cannot be written to policy.json: {}; sign the images for the \
             site with `push --sign-images`, and add --set image-key=FILE",
            why.unwrap_or("the image has no destination")
        ))),
    }
}

/// Why policy.json cannot express the signers of a rule; `None` if it can.
fn inexpressible(signers: &RuleSigners) -> Option<&'static str> {
    if signers.needs_provenance {
        return Some("policy.json has no conditions on the provenance");
    }
    match &signers.identities[..] {
        [] => None,
        [one] if signers.keys.is_empty() => {
            let is_address = one.identity.contains('@') && !one.identity.contains("://");
            if one.issuer.contains('*') || one.identity.contains('*') {
                Some("policy.json has no patterns for identities")
            } else if !is_address {
                Some("policy.json only has e-mail addresses as identities")
            } else if signers.logs.is_empty() || signers.authorities.is_empty() {
                Some("policy.json needs a transparency log for identities")
            } else {
                None
            }
        }
        _ => Some("policy.json has only one kind of signer, and one identity"),
    }
}

/// The signers of images that `push --sign-images` signed with this key.
fn site_signers(key: &str) -> RuleSigners {
    RuleSigners {
        keys: vec![format!("{key}\n")],
        identities: Vec::new(),
        authorities: Vec::new(),
        logs: Vec::new(),
        needs_provenance: false,
    }
}

impl ScopeRule {
    /// The condition on the name in the signature.
    fn identity(&self) -> Value {
        json!({"type": "exactRepository", "dockerRepository": self.signed_name})
    }
}

/// Returns the requirement that one of `signers` signed the image. `identity` is the condition on
/// the name in the signature.
fn signed_by(signers: &RuleSigners, identity: Value) -> Value {
    let mut requirement = json!({"type": "sigstoreSigned"});
    if let [signer, ..] = &signers.identities[..] {
        requirement["fulcio"] = json!({
            "caData": STANDARD.encode(signers.authorities.concat()),
            "oidcIssuer": signer.issuer,
            "subjectEmail": signer.identity,
        });
    } else {
        put(&mut requirement, "keyData", "keyDatas", &signers.keys);
    }
    if !signers.logs.is_empty() {
        put(
            &mut requirement,
            "rekorPublicKeyData",
            "rekorPublicKeyDatas",
            &signers.logs,
        );
    }
    requirement["signedIdentity"] = identity;
    requirement
}

/// Writes keys in base64: one under `single`, which all releases read, and several under `several`.
fn put(requirement: &mut Value, single: &str, several: &str, keys: &[String]) {
    match keys {
        [one] => requirement[single] = STANDARD.encode(one).into(),
        keys => {
            let keys: Vec<String> = keys.iter().map(|key| STANDARD.encode(key)).collect();
            requirement[several] = keys.into();
        }
    }
}

fn wrong(why: impl fmt::Display) -> Failure {
    wrong_value(POLICY.key, "rules", why)
}

/// The setting that names the file of the key.
pub(super) const IMAGE_KEY: PlatformSetting = PlatformSetting::new(
    "image-key",
    "FILE",
    "The public key (PEM) of `push --sign-images`: adds a policy that admits images \
           from the registry only if this key verifies their signatures",
);

/// Reads the key, if the setting is given. Fails if the file is not a public key in PEM.
pub(super) fn image_key(settings: &PlatformSettings) -> Result<Option<String>, Failure> {
    let Some(path) = settings.get(IMAGE_KEY.key) else {
        return Ok(None);
    };
    let pem = read_text_input(path).map_err(|error| Failure::read(path, error))?;
    if pem.starts_with("-----BEGIN PUBLIC KEY-----") {
        return Ok(Some(pem.trim_end().to_owned()));
    }
    Err(wrong_value(
        IMAGE_KEY.key,
        path,
        "the file is not a public key in PEM",
    ))
}

/// The input for the key.
pub(super) const PACKAGES_KEY: PlatformInput = PlatformInput {
    name: "packages-key",
    flag: InputFlag::Long,
    value_name: "FILE",
    help: "The OpenPGP key, public or private, with which the site signs the metadata of package \
           sets with `index: trimmed`",
};

/// If the site signs the metadata of any of `sets`, returns the armored public halves of the keys
/// that it signs with. The metadata of other sets is signed by the upstream repository.
/// Fails if the site signs metadata and the user named no key.
pub(super) fn packages_key(
    request: &RenderRequest<'_>,
    sets: &[&LockedPackageSet],
) -> Result<Option<String>, Failure> {
    let Some(set) = sets.iter().find(|set| set.index == OfferedIndex::Trimmed) else {
        return Ok(None);
    };
    let mut texts = String::new();
    for path in request.paths(PACKAGES_KEY.name) {
        let bytes = read_input(path).map_err(|error| Failure::read(path, error))?;
        let keys = OpenPgpSigner::public_half(&bytes);
        let keys = keys.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        texts.extend(keys.certificates());
    }
    if texts.is_empty() {
        return Err(Failure::usage(format!(
            "{} has `index: trimmed`, so the site signs its metadata: name its OpenPGP key with \
             --packages-key FILE",
            set.name
        )));
    }
    Ok(Some(texts))
}

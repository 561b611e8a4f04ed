//! Limits the number of packages and relations of an index: each of them takes many times the bytes
//! in memory that it has in the index.

use super::fields::PackageFields;
use super::paragraph::paragraphs;
use crate::PackagesError;

/// The maximum number of packages in an index. Each takes up to 500 bytes of memory. Debian 12 has
/// 65,000 packages for one architecture.
const MAX_PACKAGES: usize = 500_000;

/// The maximum number of relations in an index: dependencies, conflicts and virtual packages. Each
/// takes up to 130 bytes of memory. Debian 12 has 470,000.
const MAX_RELATIONS: usize = 4_000_000;

/// Checks that `index`, the text of the file `name`, does not list too much.
///
/// # Errors
/// If it has more packages or relations than allowed.
pub fn check_index_size(name: &str, index: &str) -> Result<(), PackagesError> {
    check_counts(name, index, MAX_PACKAGES, MAX_RELATIONS)
}

fn check_counts(
    name: &str,
    index: &str,
    packages: usize,
    relations: usize,
) -> Result<(), PackagesError> {
    let too_many = |limit: usize, what: &'static str| {
        let name = name.to_owned();
        Err(PackagesError::TooMany { name, limit, what })
    };
    let mut count = 0;
    for (number, paragraph) in paragraphs(index).enumerate() {
        if number >= packages {
            return too_many(packages, "packages");
        }
        let fields = PackageFields::parse(paragraph);
        for text in fields.relations.iter().chain([&fields.provides]) {
            count += memchr::memchr2_iter(b',', b'|', text.as_bytes()).count();
            count += usize::from(!text.is_empty());
        }
        if count > relations {
            return too_many(relations, "dependencies and other relations");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_relations_are_counted() {
        let one = "Package: a\nVersion: 1\nDepends: b, c | d\nProvides: e\nTag: x, y, z\n\n";
        let check = |packages: usize, relations: usize| {
            let checked = check_counts("Packages", &one.repeat(3), packages, relations);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(3, 12), Ok(()));
        let error = check(2, 12).unwrap_err();
        assert_eq!(error, "Packages lists more than 2 packages");
        let error = check(3, 11).unwrap_err();
        assert!(error.contains("more than 11 dependencies"), "{error}");
        // the smallest packages and relations that there are
        let index = "Package: a\n\n".repeat(MAX_PACKAGES + 1);
        assert!(check_index_size("Packages", &index).is_err());
        let index = format!("Depends: {}\n", "a,".repeat(MAX_RELATIONS));
        assert!(check_index_size("Packages", &index).is_err());
    }
}

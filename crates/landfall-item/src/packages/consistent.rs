//! Reads metadata files that must match each other, from a mirror that may be updated meanwhile.

use crate::resolver::ResolveError;

/// The maximum number of times that metadata is read while its signed list keeps changing.
const READS: usize = 3;

/// Reads a signed list with `list`, and then the files that it names with `rest`. If `rest` fails
/// and the list has changed by then, the mirror was updated in between, so `rest` is called again
/// with the new list.
pub(super) async fn read_consistent<L: PartialEq, T>(
    list: impl AsyncFn() -> Result<L, ResolveError>,
    rest: impl AsyncFn(&L) -> Result<T, ResolveError>,
) -> Result<T, ResolveError> {
    let mut read = list().await?;
    for _ in 1..READS {
        let cause = match rest(&read).await {
            Err(cause) => cause,
            found => return found,
        };
        match list().await {
            Ok(next) if next != read => read = next,
            _ => return Err(cause),
        }
    }
    rest(&read).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn metadata_is_read_again_while_its_list_changes() {
        // the successive lists of the mirror, the list that matches its files, and how many lists
        // are read
        for (lists, good, reads) in [
            (&[1][..], 1, 1),
            (&[1, 2], 2, 2),
            (&[1, 2, 3], 3, 3),
            (&[1, 1], 2, 2),
        ] {
            let count = AtomicUsize::new(0);
            let found = read_consistent(
                async || Ok(lists[count.fetch_add(1, Ordering::Relaxed)]),
                async |list| {
                    if *list == good {
                        Ok(*list)
                    } else {
                        Err(ResolveError::from("the file does not match the list"))
                    }
                },
            );
            let found = found.await.ok();
            assert_eq!(
                (found, count.load(Ordering::Relaxed)),
                (lists.contains(&good).then_some(good), reads)
            );
        }
    }
}

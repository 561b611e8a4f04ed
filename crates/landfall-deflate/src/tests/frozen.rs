//! The encoding of recipes is frozen: the same stream has the same recipe in every release, and an
//! old recipe still rebuilds it.

use super::*;
use crate::analyze::predict;
use sha2::{Digest, Sha256};

/// The encoders whose streams are predicted, as a recipe records them, with the SHA-256 of the
/// recipe.
const FROZEN: [(&[u8], &str); 6] = [
    (
        &[1, 0, 1],
        "38c6f6fcc2088f86cc0b62b91330721db7acc130c2e775356f6d92f9217ecf57",
    ),
    (
        &[1, 0, 6],
        "c777f60593a7c3695fd01c0e1fe530d39baefa3c53a2c3aed41848a4dab9364d",
    ),
    (
        &[2, 6, 1, 0, 0, 0, 0],
        "a96ee1397918311feca99303a0d01fa1393f539a05bee9a729657115facf271c",
    ),
    (
        &[3, 6, 0xf8, 0],
        "da96ad3551189213ab9434830e24f88c3adddc5997734fe489465f3f9f208fb8",
    ),
    (
        &[3, 1, 0xf8, 0],
        "56cee9d96b1e6051bb6e45b085bece43c9d3a38a6e003006c78bf730182daaf3",
    ),
    (
        &[4, 9],
        "1aeeccb4909061618fe763e13610645668f720d4796894ae452211110740ae86",
    ),
];

#[test]
fn recipes_of_predicted_streams_stay_as_they_are() {
    let plain = [
        text(150_000, 1),
        noise(20_000, 2),
        vec![0; 70_000],
        text(150_000, 3),
    ]
    .concat();
    let mut found = Vec::new();
    for (encoder, _) in FROZEN {
        let mut out = crate::bits::BitWriter::default();
        let mut writer = EncoderSpec::from_bytes(encoder).unwrap().start();
        writer.write(&plain, &mut out);
        writer.finish(&mut out);
        let stream = member(&out.bytes, &plain);
        let recipe = predict(&stream, &GENEROUS).unwrap();
        assert_eq!(rebuilt(&recipe, &plain, 10_000).unwrap(), stream);
        let digest = Sha256::digest(recipe.as_bytes());
        found.push(
            digest
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>(),
        );
    }
    assert_eq!(found, FROZEN.map(|(_, digest)| digest));
}

//! Ed25519, strictly: every encoding is canonical, and neither key nor nonce point has small order.
//!
//! Implementations of RFC 8032 disagree about inputs at the edge: encodings above the field's order, points of small
//! order, the cofactor. Here each of them is refused, and the equation is checked without the cofactor, so that all
//! nodes agree and nobody but the holder of the key can make a second signature over the same message.

use curve25519_dalek::{EdwardsPoint, edwards::CompressedEdwardsY, scalar::Scalar, traits::IsIdentity as _};
use sha2::{Digest as _, Sha512};

/// Whether a key is a canonical point that can verify anything of value.
pub fn is_usable(key: &[u8; 32]) -> bool {
    point(key).is_some()
}

/// Whether `signature` is one of `message` under `key`.
pub(crate) fn is_valid(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    let (r_bytes, s_bytes) = signature.split_at(32);
    let r_bytes: [u8; 32] = r_bytes.try_into().expect("half of 64 bytes");
    let s_bytes: [u8; 32] = s_bytes.try_into().expect("half of 64 bytes");
    let Some(key_point) = point(key) else { return false };
    let Some(r_point) = point(&r_bytes) else { return false };
    let Some(s) = Option::<Scalar>::from(Scalar::from_canonical_bytes(s_bytes)) else { return false };
    let mut hash = Sha512::new();
    hash.update(r_bytes);
    hash.update(key);
    hash.update(message);
    let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
    let expected = EdwardsPoint::vartime_double_scalar_mul_basepoint(&k, &-key_point, &s);
    (expected - r_point).is_identity()
}

/// The point with this canonical encoding, unless its order is small.
fn point(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    let point = CompressedEdwardsY(*bytes).decompress()?;
    // Decompression accepts y above the field's order, and a sign on a zero x.
    (point.compress().0 == *bytes && !point.is_small_order()).then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;
    use curve25519_dalek::{constants::EIGHT_TORSION, traits::Identity as _};

    /// RFC 8032, section 7.1, tests 1 to 3.
    const RFC_8032: [(&str, &str, &str); 3] = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ];

    fn read(text: &str) -> Vec<u8> {
        hex::decode(text).unwrap()
    }

    fn check(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        is_valid(key.try_into().unwrap(), message, signature.try_into().unwrap())
    }

    /// The group's order, little-endian.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];

    #[test]
    fn vectors_of_the_rfc_pass_and_every_changed_bit_fails() {
        for (key, message, signature) in RFC_8032 {
            let (key, message, signature) = (read(key), read(message), read(signature));
            assert!(check(&key, &message, &signature));
            assert!(!check(&key, b"another message", &signature));
            for bit in 0..512 {
                let mut changed = signature.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(!check(&key, &message, &changed), "bit {bit}");
            }
            for bit in 0..256 {
                let mut changed = key.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(!check(&changed, &message, &signature), "bit {bit} of the key");
            }
        }
    }

    /// s and s + order satisfy the same equation: only the smaller one is a signature.
    #[test]
    fn a_malleated_s_is_refused() {
        let (key, message, signature) = RFC_8032[1];
        let (key, message, mut signature) = (read(key), read(message), read(signature));
        let mut carry = 0u16;
        for (byte, order) in signature[32..].iter_mut().zip(ORDER) {
            carry += u16::from(*byte) + u16::from(order);
            *byte = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        assert_eq!(carry, 0);
        assert!(!check(&key, &message, &signature));
    }

    /// A signature with this key's secret, whose points are moved by points of small order.
    fn moved(
        secret: Scalar,
        key_by: EdwardsPoint,
        r_by: EdwardsPoint,
        message: &[u8],
    ) -> ([u8; 32], [u8; 64], Scalar) {
        let nonce = Scalar::from(7_777u64) * secret;
        let key = (EdwardsPoint::mul_base(&secret) + key_by).compress().0;
        let r = (EdwardsPoint::mul_base(&nonce) + r_by).compress().0;
        let hash = Sha512::new().chain_update(r).chain_update(key).chain_update(message);
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&r);
        signature[32..].copy_from_slice(&(nonce + k * secret).to_bytes());
        (key, signature, k)
    }

    /// Points of mixed order satisfy the equation with the cofactor. Without it they do so where the parts of small
    /// order cancel out by chance, the same on every node.
    #[test]
    fn points_of_mixed_order_are_judged_without_the_cofactor() {
        let small = EIGHT_TORSION[1];
        let (mut refused, mut taken) = (0, 0);
        for n in 1..=64u8 {
            let secret = Scalar::from(1_000_003 * u64::from(n));
            let (key, signature, _) = moved(secret, EdwardsPoint::identity(), EdwardsPoint::identity(), b"m");
            assert!(is_valid(&key, b"m", &signature));
            let (key, signature, _) = moved(secret, EdwardsPoint::identity(), small, b"m");
            assert!(!is_valid(&key, b"m", &signature), "R of mixed order");
            let (key, signature, k) = moved(secret, small, EdwardsPoint::identity(), b"m");
            let cancels = k.as_bytes()[0] % 8 == 0;
            assert_eq!(is_valid(&key, b"m", &signature), cancels, "a key of mixed order");
            *(if cancels { &mut taken } else { &mut refused }) += 1;
            // Both moved so that they cancel out for this k alone.
            let (key, signature, k) = moved(secret, small, EIGHT_TORSION[usize::from(n % 8)], b"m");
            let cancels = (k.as_bytes()[0] % 8 + n).is_multiple_of(8);
            assert_eq!(is_valid(&key, b"m", &signature), cancels, "both");
        }
        assert!(refused > 40 && taken > 1, "{refused} {taken}");
    }

    /// s of zero, above the order, and of full width; R of zero, and R that is another signature's.
    #[test]
    fn odd_scalars_and_foreign_points_are_refused() {
        let (key, message, signature) = RFC_8032[1];
        let (key, message, signature) = (read(key), read(message), read(signature));
        let mut below = ORDER;
        below[0] -= 1;
        for s in [[0; 32], ORDER, below, [0xff; 32], [0x7f; 32]] {
            let forged = [&signature[..32], &s].concat();
            assert!(!check(&key, &message, &forged), "{s:?}");
        }
        for r in [[0; 32].to_vec(), read(RFC_8032[0].2)[..32].to_vec(), key.clone()] {
            let forged = [&r[..], &signature[32..]].concat();
            assert!(!check(&key, &message, &forged), "{r:?}");
        }
        let swapped = [&signature[32..], &signature[..32]].concat();
        assert!(!check(&key, &message, &swapped));
    }

    /// The eight points of small order, and encodings of them above the field's order or with a needless sign. With
    /// such a key, one signature fits many messages.
    #[test]
    fn points_of_small_order_and_odd_encodings_are_refused() {
        let odd = [
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000080",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "0100000000000000000000000000000000000000000000000000000000000080",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        ];
        let (_, message, signature) = RFC_8032[1];
        for text in odd {
            let bytes = read(text);
            assert!(!is_usable(bytes[..].try_into().unwrap()), "{text}");
            let mut with_r = read(signature);
            with_r[..32].copy_from_slice(&bytes);
            assert!(!check(&read(RFC_8032[1].0), &read(message), &with_r), "{text} as R");
            // R = identity, s = 0 and a key of small order satisfy the equation for many messages.
            let mut forged = vec![0u8; 64];
            forged[0] = 1;
            assert!(!check(&bytes, &read(message), &forged), "{text} as the key");
        }
        assert!(is_usable(read(RFC_8032[0].0)[..].try_into().unwrap()));
    }
}

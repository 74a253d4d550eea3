//! The Web3 secret storage format, version 3: a key, encrypted with a password, as geth, cast and wallets read it.

use crate::secret_file;
use aes::{Aes128, cipher::KeyIvInit as _, cipher::StreamCipher as _};
use alloy_primitives::{Address, B256, hex, keccak256};
use almanac_primitives::keys::SecretKey;
use ctr::Ctr128BE;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Work of scrypt for new files, as a power of two: OWASP's advice, about a third of a second and 128 MiB.
const LOG_N: u8 = 17;
const BLOCK_SIZE: u32 = 8;
/// Most memory that a file may ask for. geth's own take 256 MiB.
const MEMORY_BYTES_MAX: u64 = 512 * 1024 * 1024;
const PARALLEL_MAX: u32 = 16;
/// Most rounds of PBKDF2 that a file may ask for: some seconds.
const ROUNDS_MAX: u32 = 10_000_000;
/// The first half decrypts, the second authenticates.
const DERIVED_BYTES: usize = 32;
const VERSION: u32 = 3;

/// A file of the format. Fields that it does not define are ignored, as other programs do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Keystore {
    /// The account of a secp256k1 key, so that a list needs no password. Without 0x, as geth writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    id: String,
    version: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Crypto {
    cipher: String,
    cipherparams: CipherParams,
    ciphertext: String,
    kdf: String,
    kdfparams: KdfParams,
    mac: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CipherParams {
    iv: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum KdfParams {
    Scrypt { dklen: usize, n: u64, p: u32, r: u32, salt: String },
    Pbkdf2 { c: u32, dklen: usize, prf: String, salt: String },
}

/// Why a file gives no key.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum KeystoreError {
    #[error("NotAKeystore: the file is not a Web3 keystore of version {VERSION}: {0}")]
    NotAKeystore(String),
    #[error("UnknownCipher: {0:?}; only aes-128-ctr is known")]
    UnknownCipher(String),
    #[error("UnknownKdf: {0:?}; scrypt and pbkdf2 with hmac-sha256 are known")]
    UnknownKdf(String),
    #[error("WorkTooLarge: the file asks for {given} of {what}; at most {max} are allowed")]
    WorkTooLarge { what: &'static str, given: u64, max: u64 },
    #[error("WrongPassword: the password does not open the key")]
    WrongPassword,
    #[error(
        "AddressDiffers: the file names {named}, and its key is that of {found}: somebody changed it: take it from a backup"
    )]
    AddressDiffers { named: Address, found: Address },
}

impl Keystore {
    /// Encrypts a secret. `address` is what lists show.
    pub(crate) fn encrypt(secret: &B256, address: Option<Address>, password: &str) -> anyhow::Result<Self> {
        let (salt, iv): ([u8; 32], [u8; 16]) = (secret_file::random()?, secret_file::random()?);
        let kdfparams = KdfParams::Scrypt {
            dklen: DERIVED_BYTES,
            n: 1 << LOG_N,
            p: 1,
            r: BLOCK_SIZE,
            salt: hex::encode(salt),
        };
        let derived = derive("scrypt", &kdfparams, password)?;
        let mut bytes = *secret;
        apply(&derived, &iv, bytes.as_mut_slice());
        let crypto = Crypto {
            cipher: "aes-128-ctr".to_owned(),
            cipherparams: CipherParams { iv: hex::encode(iv) },
            ciphertext: hex::encode(bytes),
            kdf: "scrypt".to_owned(),
            kdfparams,
            mac: hex::encode(mac(&derived, bytes.as_slice())),
        };
        let address = address.map(hex::encode);
        Ok(Self { address, crypto, id: random_uuid(secret_file::random()?), version: VERSION })
    }

    /// Reads a file, whatever made it.
    pub(crate) fn parse(text: &str) -> Result<Self, KeystoreError> {
        let read: Self =
            serde_json::from_str(text).map_err(|error| KeystoreError::NotAKeystore(error.to_string()))?;
        if read.version != VERSION {
            return Err(KeystoreError::NotAKeystore(format!("it has version {}", read.version)));
        }
        Ok(read)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers are JSON") + "\n"
    }

    /// The account that the file names, which nothing proves before it is decrypted.
    pub(crate) fn address(&self) -> Option<Address> {
        self.address.as_ref()?.parse().ok()
    }

    /// The key.
    pub(crate) fn decrypt(&self, password: &str) -> Result<B256, KeystoreError> {
        let crypto = &self.crypto;
        if crypto.cipher != "aes-128-ctr" {
            return Err(KeystoreError::UnknownCipher(crypto.cipher.clone()));
        }
        let iv: [u8; 16] = bytes("iv", &crypto.cipherparams.iv)?;
        let mut secret: B256 = bytes::<32>("ciphertext", &crypto.ciphertext)?.into();
        let expected: [u8; 32] = bytes("mac", &crypto.mac)?;
        let derived = derive(&crypto.kdf, &crypto.kdfparams, password)?;
        if mac(&derived, secret.as_slice()) != B256::from(expected) {
            return Err(KeystoreError::WrongPassword);
        }
        apply(&derived, &iv, secret.as_mut_slice());
        self.check_address(secret)?;
        Ok(secret)
    }

    /// Nothing protects the address in a file: a list would show one account, and transactions would come from another.
    fn check_address(&self, secret: B256) -> Result<(), KeystoreError> {
        match (self.address(), account(secret)) {
            (Some(named), Some(found)) if named != found => {
                Err(KeystoreError::AddressDiffers { named, found })
            }
            _ => Ok(()),
        }
    }
}

/// The account of a secp256k1 key, if it is one.
pub(super) fn account(secret: B256) -> Option<Address> {
    SecretKey::secp256k1(secret).ok().map(|key| key.leaf().account())
}

fn bytes<const N: usize>(field: &str, text: &str) -> Result<[u8; N], KeystoreError> {
    let malformed = || KeystoreError::NotAKeystore(format!("its {field} is not {N} bytes in hexadecimal"));
    hex::decode_to_array(text).map_err(|_| malformed())
}

/// The key that the password gives, within bounds: the file may come from anybody.
fn derive(kdf: &str, params: &KdfParams, password: &str) -> Result<[u8; DERIVED_BYTES], KeystoreError> {
    let mut derived = [0; DERIVED_BYTES];
    let within = |what, given: u64, max: u64| match given <= max {
        true => Ok(()),
        false => Err(KeystoreError::WorkTooLarge { what, given, max }),
    };
    match (kdf, params) {
        ("scrypt", KdfParams::Scrypt { dklen: DERIVED_BYTES, n, p, r, salt }) => {
            within("bytes of memory", scrypt_bytes(*n, *r, *p), MEMORY_BYTES_MAX)?;
            within("parallel parts", (*p).into(), PARALLEL_MAX.into())?;
            let invalid =
                || KeystoreError::NotAKeystore(format!("scrypt takes no n = {n}, r = {r}, p = {p}"));
            if *n < 2 || !n.is_power_of_two() {
                return Err(invalid());
            }
            let log_n = u8::try_from(n.ilog2()).expect("below 64");
            let params = scrypt::Params::new(log_n, *r, *p).map_err(|_| invalid())?;
            scrypt::scrypt(password.as_bytes(), &salt_of(salt)?, &params, &mut derived)
                .map_err(|_| invalid())?;
        }
        ("pbkdf2", KdfParams::Pbkdf2 { c, dklen: DERIVED_BYTES, prf, salt }) if prf == "hmac-sha256" => {
            within("rounds", (*c).into(), ROUNDS_MAX.into())?;
            pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt_of(salt)?, *c, &mut derived);
        }
        _ => return Err(KeystoreError::UnknownKdf(kdf.to_owned())),
    }
    Ok(derived)
}

/// Memory that scrypt takes: a table of `n` blocks, and a block for each parallel part.
fn scrypt_bytes(n: u64, r: u32, p: u32) -> u64 {
    n.saturating_add(p.into()).saturating_mul(r.into()).saturating_mul(128)
}

fn salt_of(text: &str) -> Result<Vec<u8>, KeystoreError> {
    hex::decode(text).map_err(|_| KeystoreError::NotAKeystore("its salt is not hexadecimal".to_owned()))
}

/// Encrypts or decrypts, which is the same.
fn apply(derived: &[u8; DERIVED_BYTES], iv: &[u8; 16], bytes: &mut [u8]) {
    let key: [u8; 16] = derived[..16].try_into().expect("half of 32");
    Ctr128BE::<Aes128>::new(&key.into(), &(*iv).into()).apply_keystream(bytes);
}

fn mac(derived: &[u8; DERIVED_BYTES], ciphertext: &[u8]) -> B256 {
    keccak256([&derived[16..], ciphertext].concat())
}

/// A random name, as version 4 of RFC 9562 writes it.
fn random_uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;

    /// The two examples of the format's definition, which every implementation has.
    const SECRET: B256 = b256!("7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d");
    const PBKDF2: &str = r#"{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext":"5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46","kdf":"pbkdf2",
        "kdfparams":{"c":262144,"dklen":32,"prf":"hmac-sha256",
        "salt":"ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd"},
        "mac":"517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2"},
        "id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}"#;
    const SCRYPT: &str = r#"{"crypto":{"cipher":"aes-128-ctr","cipherparams":{"iv":"83dbcc02d8ccb40e466191a123791e0e"},
        "ciphertext":"d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c","kdf":"scrypt",
        "kdfparams":{"dklen":32,"n":262144,"r":1,"p":8,
        "salt":"ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19"},
        "mac":"2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097"},
        "id":"3198bc9c-6672-5ab3-d995-4942343ae5b6","version":3}"#;

    #[test]
    fn keystore_01_the_examples_of_the_definition_open() {
        for text in [PBKDF2, SCRYPT] {
            let keystore = Keystore::parse(text).unwrap();
            assert_eq!(keystore.decrypt("testpassword"), Ok(SECRET));
        }
        assert_eq!(Keystore::parse(PBKDF2).unwrap().decrypt("other"), Err(KeystoreError::WrongPassword));
    }

    #[test]
    fn keystore_02_what_is_encrypted_opens_again_and_shows_its_address() {
        let address = account(SECRET).unwrap();
        let made = Keystore::encrypt(&SECRET, Some(address), "päss word").unwrap();
        let read = Keystore::parse(&made.to_json()).unwrap();
        assert_eq!((read.address(), read.decrypt("päss word")), (Some(address), Ok(SECRET)));
        assert!(!made.to_json().contains(&hex::encode(SECRET)));
        assert_eq!((read.id.len(), &read.id[14..15]), (36, "4"));
    }

    /// The key of a file whose address was edited opened, and signed for another account than the list had shown.
    #[test]
    fn keystore_08_an_edited_address_is_noticed() {
        let named = Address::repeat_byte(7);
        let edited = PBKDF2.replacen('{', &format!("{{\"address\":\"{}\",", hex::encode(named)), 1);
        let found = account(SECRET).unwrap();
        let error = KeystoreError::AddressDiffers { named, found };
        assert_eq!(Keystore::parse(&edited).unwrap().decrypt("testpassword"), Err(error));
        let wrong = Keystore::parse(&edited).unwrap().decrypt("other");
        assert_eq!(wrong, Err(KeystoreError::WrongPassword), "who does not know the password learns nothing");
    }

    /// A file from a stranger can take neither all memory nor an hour, and cannot make the program panic.
    #[test]
    fn keystore_03_hostile_files_are_refused() {
        let refused =
            |text: &str| Keystore::parse(text).and_then(|read| read.decrypt("testpassword")).unwrap_err();
        let changed = |old: &str, new: &str| {
            let base = if SCRYPT.contains(old) { SCRYPT } else { PBKDF2 };
            refused(&base.replacen(old, new, 1)).to_string()
        };
        assert!(
            changed("\"n\":262144", "\"n\":1073741824")
                .contains("WorkTooLarge: the file asks for 137438954496")
        );
        assert!(
            changed("\"p\":8", "\"p\":17").contains("WorkTooLarge: the file asks for 17 of parallel parts")
        );
        assert!(
            changed("\"c\":262144", "\"c\":10000001")
                .contains("WorkTooLarge: the file asks for 10000001 of rounds")
        );
        assert!(changed("\"n\":262144", "\"n\":262143").contains("scrypt takes no n = 262143"));
        assert!(changed("\"n\":262144", "\"n\":0").contains("scrypt takes no n = 0"));
        assert!(changed("\"n\":262144", "\"n\":1").contains("scrypt takes no n = 1,"));
        assert!(changed("\"r\":1", "\"r\":0").contains("scrypt takes no"));
        assert!(changed("\"dklen\":32", "\"dklen\":16").contains("UnknownKdf"));
        assert!(changed("hmac-sha256", "hmac-md5").contains("UnknownKdf"));
        assert!(changed("aes-128-ctr", "aes-256-cbc").contains("UnknownCipher: \"aes-256-cbc\""));
        assert!(changed("83dbcc02", "83dbcc").contains("its iv is not 16 bytes"));
        assert!(changed("d172bf74", "d172").contains("its ciphertext is not 32 bytes"));
        assert!(changed("\"version\":3", "\"version\":1").contains("it has version 1"));
        assert!(refused("{}").to_string().contains("NotAKeystore"));
    }

    /// The table alone was counted: with n = 1, the parallel parts of a file took 8 GiB.
    #[test]
    fn keystore_07_parallel_parts_count_as_memory() {
        let hostile = SCRYPT
            .replacen("\"n\":262144", "\"n\":2", 1)
            .replacen("\"r\":1", "\"r\":2097152", 1)
            .replacen("\"p\":8", "\"p\":16", 1);
        let refused = Keystore::parse(&hostile).unwrap().decrypt("testpassword").unwrap_err().to_string();
        assert!(
            refused.contains("WorkTooLarge: the file asks for 4831838208 of bytes of memory"),
            "{refused}"
        );
        // The last one that is allowed, and the first that is not.
        assert_eq!(scrypt_bytes(2, 262_144, 14), MEMORY_BYTES_MAX);
        assert_eq!(scrypt_bytes(2, 262_144, 15), MEMORY_BYTES_MAX + 128 * 262_144);
        assert!(scrypt_bytes(1 << 18, 8, 1) < MEMORY_BYTES_MAX, "geth's own");
        assert_eq!(scrypt_bytes(u64::MAX, u32::MAX, u32::MAX), u64::MAX);
    }
}

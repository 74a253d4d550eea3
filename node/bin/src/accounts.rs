//! The ten accounts of a developer chain, which every Ethereum tool knows.

use alloy_primitives::{Address, B256, U256, address, b256};
use alloy_signer_local::{MnemonicBuilder, coins_bip39::English};
use almanac_primitives::{
    Genesis, TimestampMs, Wei, addresses::DEVELOPER, genesis::Allocation, params::DEVELOPER_TREASURY,
};
use std::collections::BTreeMap;

/// The phrase that the keys come from, by Ethereum's usual path m/44'/60'/0'/0/n.
pub(crate) const MNEMONIC: &str = "test test test test test test test test test test test junk";

/// What each account starts with, in whole coins.
pub(crate) const COINS: u64 = 10_000;

/// Chain id that tools expect of a developer's chain.
pub(crate) const CHAIN_ID: u64 = 31_337;

/// An account whose key everybody knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DevAccount {
    pub(crate) address: Address,
    pub(crate) secret: B256,
}

/// Accounts 0 to 9 of the phrase.
pub(crate) const ACCOUNTS: [DevAccount; 10] = [
    DevAccount {
        address: address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
        secret: b256!("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"),
    },
    DevAccount {
        address: address!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
        secret: b256!("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"),
    },
    DevAccount {
        address: address!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
        secret: b256!("0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"),
    },
    DevAccount {
        address: address!("0x90F79bf6EB2c4f870365E785982E1f101E93b906"),
        secret: b256!("0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6"),
    },
    DevAccount {
        address: address!("0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65"),
        secret: b256!("0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a"),
    },
    DevAccount {
        address: address!("0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc"),
        secret: b256!("0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"),
    },
    DevAccount {
        address: address!("0x976EA74026E726554dB657fA54763abd0C3a0aa9"),
        secret: b256!("0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e"),
    },
    DevAccount {
        address: address!("0x14dC79964da2C08b23698B3D3cc7Ca32193d9955"),
        secret: b256!("0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356"),
    },
    DevAccount {
        address: address!("0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f"),
        secret: b256!("0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97"),
    },
    DevAccount {
        address: address!("0xa0Ee7A142d267C1f36714E4a8F75612F20a79720"),
        secret: b256!("0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6"),
    },
];

/// The accounts of a developer's chain, and what each starts with.
#[derive(Clone, Debug)]
pub(crate) struct DevAccounts {
    pub(crate) mnemonic: String,
    pub(crate) accounts: Vec<DevAccount>,
    pub(crate) coins: u64,
}

impl Default for DevAccounts {
    fn default() -> Self {
        Self { mnemonic: MNEMONIC.to_owned(), accounts: ACCOUNTS.to_vec(), coins: COINS }
    }
}

impl DevAccounts {
    /// The first accounts of a phrase; without one, of the phrase that everybody knows.
    pub(crate) fn new(mnemonic: Option<&str>, count: u32, coins: u64) -> anyhow::Result<Self> {
        let known = ACCOUNTS.len();
        if let (None, count @ 0..=10) = (mnemonic, count as usize) {
            return Ok(Self { accounts: ACCOUNTS[..count.min(known)].to_vec(), coins, ..Self::default() });
        }
        let mnemonic = mnemonic.unwrap_or(MNEMONIC).to_owned();
        let derive = |index| -> anyhow::Result<DevAccount> {
            let signer = MnemonicBuilder::<English>::default().phrase(&mnemonic).index(index)?.build()?;
            Ok(DevAccount { address: signer.address(), secret: signer.to_bytes() })
        };
        let accounts = (0..count).map(derive).collect::<anyhow::Result<_>>()?;
        Ok(Self { mnemonic, accounts, coins })
    }

    /// The start of a developer's chain. The first account governs it.
    pub(crate) fn genesis(&self, chain_id: u64, now: TimestampMs) -> Genesis {
        let balance = Wei(U256::from(self.coins) * U256::from(10).pow(U256::from(18)));
        let account = Allocation { balance, ..Allocation::default() };
        let treasury = Allocation { balance: DEVELOPER_TREASURY, ..Allocation::default() };
        let mut allocations: BTreeMap<_, _> =
            self.accounts.iter().map(|known| (known.address, account.clone())).collect();
        // An account without anything does not exist.
        allocations.retain(|_, account| !account.balance.0.is_zero());
        allocations.insert(DEVELOPER, treasury);
        Genesis {
            chain_id,
            timestamp_ms: now,
            governance: self.accounts[0].address,
            parameters: BTreeMap::new(),
            validators: Vec::new(),
            developer: true,
            fork: None,
            allocations,
        }
    }
}

/// The start of a developer's chain with the usual accounts.
pub(crate) fn genesis(chain_id: u64, now: TimestampMs) -> Genesis {
    DevAccounts::default().genesis(chain_id, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::crypto::secp256k1::sign_message;

    #[test]
    fn every_key_belongs_to_its_address() {
        for DevAccount { address, secret } in ACCOUNTS {
            let signature = sign_message(secret, B256::ZERO).unwrap();
            assert_eq!(signature.recover_address_from_prehash(&B256::ZERO).unwrap(), address);
        }
    }

    /// More accounts than the known ten, and another phrase.
    #[test]
    fn accounts_come_from_their_phrase() {
        let more = DevAccounts::new(None, 12, 1).unwrap();
        let addresses = |accounts: &[DevAccount]| accounts.iter().map(|one| one.address).collect::<Vec<_>>();
        assert_eq!(addresses(&more.accounts[..10]), addresses(&ACCOUNTS));
        assert_eq!(more.accounts.len(), 12);
        assert_eq!(addresses(&DevAccounts::new(None, 3, 1).unwrap().accounts), addresses(&ACCOUNTS[..3]));
        let other = "legal winner thank year wave sausage worth useful legal winner thank yellow";
        assert_ne!(DevAccounts::new(Some(other), 1, 1).unwrap().accounts[0].address, ACCOUNTS[0].address);
        assert!(DevAccounts::new(Some("test test"), 1, 1).is_err());
    }
}

//! The transactions to send, signed before the clock starts.

use alloy_consensus::{SignableTransaction as _, TxEip1559, TxEnvelope};
use alloy_eips::eip2718::Encodable2718 as _;
use alloy_primitives::{Address, Bytes, TxKind, U256, address, hex};
use alloy_signer::SignerSync as _;
use alloy_signer_local::{MnemonicBuilder, PrivateKeySigner, coins_bip39::English};

/// How many transfers one load consists of.
pub(crate) const COUNT: usize = 10_000;
/// How many accounts send them, in turn.
pub(crate) const SENDERS: usize = 10;

const CHAIN_ID: u64 = 31337;
const MNEMONIC: &str = "test test test test test test test test test test test junk";
const RECIPIENT: Address = address!("00000000000000000000000000000000000000f0");
/// Init code that deploys `return 42`.
const CONTRACT: &[u8] = &hex!("6008600b5f3960085ff300602a5f5260205ff3");

/// Signed transactions as the hex text that goes into a request.
pub(crate) struct Transfers {
    /// Makes the contract that reads are measured with; the first account's first transaction.
    pub(crate) deploy: String,
    /// The transfers, in the order to send them: the accounts take turns.
    pub(crate) raw: Vec<String>,
    /// Who sends.
    pub(crate) senders: Vec<Address>,
}

impl Transfers {
    pub(crate) fn sign() -> Self {
        let signers: Vec<_> = (0..SENDERS).map(signer).collect();
        let deploy = sign(&signers[0], 0, TxKind::Create, CONTRACT, 200_000);
        let raw = (0..COUNT).map(|n| {
            let sender = n % SENDERS;
            // The first account has used one nonce for the contract.
            let nonce = n / SENDERS + usize::from(sender == 0);
            sign(&signers[sender], nonce as u64, TxKind::Call(RECIPIENT), &[], 21_000)
        });
        Self { deploy, raw: raw.collect(), senders: signers.iter().map(PrivateKeySigner::address).collect() }
    }

    /// The nonce of an account when all of its transfers are included.
    pub(crate) fn final_nonce(&self, sender: usize) -> usize {
        COUNT / SENDERS + usize::from(sender == 0)
    }
}

fn signer(index: usize) -> PrivateKeySigner {
    let index = u32::try_from(index).expect("there are ten accounts");
    let builder = MnemonicBuilder::<English>::default().phrase(MNEMONIC).index(index).expect("a valid path");
    builder.build().expect("the phrase is a valid one")
}

fn sign(signer: &PrivateKeySigner, nonce: u64, to: TxKind, input: &'static [u8], gas_limit: u64) -> String {
    let transaction = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit,
        // Far above what the base fee can become during a run.
        max_fee_per_gas: 1_000_000_000_000,
        max_priority_fee_per_gas: 1_000_000_000,
        to,
        value: U256::from(u8::from(input.is_empty())),
        access_list: Default::default(),
        input: Bytes::from_static(input),
    };
    let signature = signer.sign_hash_sync(&transaction.signature_hash()).expect("a local key signs");
    let envelope = TxEnvelope::from(transaction.into_signed(signature));
    hex::encode_prefixed(envelope.encoded_2718())
}
